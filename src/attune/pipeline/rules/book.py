"""The rules of each trigger, compiled once and found by an index."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.catalog.model import Rule
from attune.catalog.versions import VersionedCache
from attune.kernel.ids import PackId, RuleId, TriggerId
from attune.pipeline.rules.decide import compiled
from attune.pipeline.rules.model import CompiledRule
from attune.store.database import Tx

_COLUMNS = ", ".join(Rule.__struct_fields__)
# The names in these statements are those of our own structs.
_OF_TRIGGERS: Final = f"""
    SELECT {_COLUMNS} FROM rule WHERE trigger = ANY(:triggers::bigint[]) ORDER BY id
"""  # noqa: S608
_BY_IDS: Final = f"SELECT {_COLUMNS} FROM rule WHERE id = ANY(:ids::bigint[]) ORDER BY id"  # noqa: S608
_OFF: Final = "SELECT id FROM trigger WHERE id = ANY(:triggers::bigint[]) AND NOT enabled"
_CONFIGS: Final = "SELECT id, config FROM pack WHERE id = ANY(:packs::bigint[])"


class _PackConfig(msgspec.Struct, frozen=True):
    id: PackId
    config: dict[str, Any]


class RuleBook:
    """A change of the catalog makes it read its rules again, but compile only those that changed."""

    def __init__(self) -> None:
        self._of_trigger: VersionedCache[TriggerId, tuple[CompiledRule, ...]] = VersionedCache()
        self._compiled: dict[RuleId, tuple[datetime, dict[str, Any], CompiledRule]] = {}

    async def of_triggers(
        self, tx: Tx, version: int, triggers: Collection[TriggerId]
    ) -> dict[TriggerId, tuple[CompiledRule, ...]]:
        """All rules of these triggers, also those that are disabled, so that each can say why it does not answer."""
        found: dict[TriggerId, tuple[CompiledRule, ...]] = {}
        for trigger in triggers:
            if (known := self._of_trigger.get(version, trigger)) is not None:
                found[trigger] = known
        missing = sorted(set(triggers) - found.keys())
        if missing:
            loaded = await self._load(tx, missing)
            for trigger in missing:
                found[trigger] = tuple(loaded.get(trigger, ()))
                self._of_trigger.put(version, trigger, found[trigger])
        return found

    async def by_id(self, tx: Tx, ids: Collection[RuleId]) -> dict[RuleId, CompiledRule]:
        rules = await tx.all(Rule, _BY_IDS, ids=sorted(ids)) if ids else []
        return {one.rule.id: one for one in await self._all_compiled(tx, rules)}

    async def _load(self, tx: Tx, triggers: list[TriggerId]) -> dict[TriggerId, list[CompiledRule]]:
        rules = await tx.all(Rule, _OF_TRIGGERS, triggers=triggers)
        off = set(await tx.all(TriggerId, _OFF, triggers=triggers))
        found: dict[TriggerId, list[CompiledRule]] = defaultdict(list)
        for one in await self._all_compiled(tx, rules):
            if one.rule.trigger in off:
                found[one.rule.trigger].append(replace(one, trigger_enabled=False))
            elif one.rule.trigger is not None:
                found[one.rule.trigger].append(one)
        return found

    async def _all_compiled(self, tx: Tx, rules: list[Rule]) -> list[CompiledRule]:
        packs = sorted({rule.pack for rule in rules})
        configs = await tx.all(_PackConfig, _CONFIGS, packs=packs) if packs else []
        config_of = {one.id: one.config for one in configs}
        return [self._one_compiled(rule, config_of.get(rule.pack, {})) for rule in rules]

    def _one_compiled(self, rule: Rule, config: dict[str, Any]) -> CompiledRule:
        known = self._compiled.get(rule.id)
        if known is not None and known[:2] == (rule.updated, config):
            return known[2]
        made = compiled(rule, config)
        self._compiled[rule.id] = (rule.updated, config, made)
        return made
