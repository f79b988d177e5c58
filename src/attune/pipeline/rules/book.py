"""The rules of each trigger, compiled once and found by an index."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

import msgspec

from attune.catalog.model import Rule
from attune.catalog.versions import VersionedCache
from attune.kernel.ids import ActionId, PackId, RuleId, TriggerId
from attune.pipeline.rules.decide import compiled
from attune.pipeline.rules.index import TriggerRules
from attune.pipeline.rules.model import CompiledRule
from attune.store.database import Tx

_COLUMNS = ", ".join(Rule.__struct_fields__)
# The names in this statement are those of our own struct.
_BY_IDS: Final = f"SELECT {_COLUMNS} FROM rule WHERE id = ANY(:ids::bigint[]) ORDER BY id"  # noqa: S608
_STAMPS: Final = """
    SELECT id, trigger, action, pack, updated FROM rule WHERE trigger = ANY(:triggers::bigint[]) ORDER BY id
"""
_OFF: Final = "SELECT id FROM trigger WHERE id = ANY(:triggers::bigint[]) AND NOT enabled"
_CONFIGS: Final = "SELECT id, config FROM pack WHERE id = ANY(:packs::bigint[])"


class _Stamp(msgspec.Struct, frozen=True):
    """A rule as far as one sees by it whether it was changed: by somebody, or by what it names, which went or came back."""

    id: RuleId
    trigger: TriggerId | None
    action: ActionId | None
    pack: PackId
    updated: datetime

    @classmethod
    def of(cls, rule: Rule) -> Self:
        return cls(rule.id, rule.trigger, rule.action, rule.pack, rule.updated)


class _PackConfig(msgspec.Struct, frozen=True):
    id: PackId
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """`config` is that of the pack with which the rule was compiled."""

    stamp: _Stamp
    config: dict[str, Any]
    rule: CompiledRule


class RuleBook:
    """A change of the catalog makes it look at its rules again, but read and compile only those that changed."""

    def __init__(self) -> None:
        self._of_trigger: VersionedCache[TriggerId, TriggerRules] = VersionedCache()
        self._compiled: dict[RuleId, _Known] = {}
        self._configs: dict[PackId, dict[str, Any]] = {}
        self._filed: dict[TriggerId, TriggerRules] = {}

    async def of_triggers(
        self, tx: Tx, version: int, triggers: Collection[TriggerId]
    ) -> dict[TriggerId, TriggerRules]:
        """All rules of these triggers, also those that are disabled, so that each can say why it does not answer."""
        found: dict[TriggerId, TriggerRules] = {}
        for trigger in triggers:
            if (known := self._of_trigger.get(version, trigger)) is not None:
                found[trigger] = known
        missing = sorted(set(triggers) - found.keys())
        if missing:
            loaded = await self._load(tx, missing)
            for trigger in missing:
                found[trigger] = self._file(trigger, loaded.get(trigger, []))
                self._of_trigger.put(version, trigger, found[trigger])
        return found

    async def by_id(self, tx: Tx, ids: Collection[RuleId]) -> dict[RuleId, CompiledRule]:
        rules = await tx.all(Rule, _BY_IDS, ids=sorted(ids)) if ids else []
        configs = await self._configs_of(tx, {rule.pack for rule in rules})
        return {rule.id: self._one_compiled(rule, configs) for rule in rules}

    async def _load(self, tx: Tx, triggers: list[TriggerId]) -> dict[TriggerId, list[CompiledRule]]:
        stamps = await tx.all(_Stamp, _STAMPS, triggers=triggers)
        compiled_rules = await self._all_compiled(tx, stamps)
        off = set(await tx.all(TriggerId, _OFF, triggers=triggers))
        found: dict[TriggerId, list[CompiledRule]] = defaultdict(list)
        for stamp in stamps:
            one = compiled_rules.get(stamp.id)
            if one is None or one.rule.trigger is None or one.rule.trigger != stamp.trigger:
                continue  # changed since its stamp was read; the next version of the catalog has it
            is_on = one.rule.trigger not in off
            found[one.rule.trigger].append(one if is_on else replace(one, trigger_enabled=False))
        return found

    async def _all_compiled(self, tx: Tx, stamps: Sequence[_Stamp]) -> dict[RuleId, CompiledRule]:
        configs = await self._configs_of(tx, {stamp.pack for stamp in stamps})
        found: dict[RuleId, CompiledRule] = {}
        stale: list[RuleId] = []
        for stamp in stamps:
            known = self._known(stamp, configs.get(stamp.pack, {}))
            if known is None:
                stale.append(stamp.id)
            else:
                found[stamp.id] = known
        for rule in await tx.all(Rule, _BY_IDS, ids=stale) if stale else []:
            found[rule.id] = self._one_compiled(rule, configs)
        return found

    def _one_compiled(self, rule: Rule, configs: Mapping[PackId, dict[str, Any]]) -> CompiledRule:
        config = configs.get(rule.pack, {})
        stamp = _Stamp.of(rule)
        known = self._known(stamp, config)
        if known is None:
            known = compiled(rule, config)
            self._compiled[rule.id] = _Known(stamp, config, known)
        return known

    def _known(self, stamp: _Stamp, config: dict[str, Any]) -> CompiledRule | None:
        known = self._compiled.get(stamp.id)
        if known is None or known.stamp != stamp:
            return None
        return known.rule if known.config is config or known.config == config else None

    def _file(self, trigger: TriggerId, rules: list[CompiledRule]) -> TriggerRules:
        """What a change elsewhere left as it was is not indexed again."""
        filed = self._filed.get(trigger)
        if filed is None or not _are_the_same(filed, rules):
            filed = self._filed[trigger] = TriggerRules(rules)
        return filed

    async def _configs_of(self, tx: Tx, packs: Collection[PackId]) -> dict[PackId, dict[str, Any]]:
        """One that did not change is the same object as ever, so that no rule compares it item by item."""
        rows = await tx.all(_PackConfig, _CONFIGS, packs=sorted(packs)) if packs else []
        found = {}
        for one in rows:
            kept = self._configs.get(one.id)
            if kept is None or kept != one.config:
                kept = self._configs[one.id] = one.config
            found[one.id] = kept
        return found


def _are_the_same(filed: TriggerRules, rules: Sequence[CompiledRule]) -> bool:
    return len(filed) == len(rules) and all(
        one.rule is other.rule and one.trigger_enabled == other.trigger_enabled
        for one, other in zip(filed, rules, strict=True)
    )
