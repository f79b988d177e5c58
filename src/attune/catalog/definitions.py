"""What an execution runs, kept by content: the definition stays while its action and pack move on."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.catalog.model import Action, ActionDefinition
from attune.catalog.runners import SHELL
from attune.kernel.errors import NotFound
from attune.kernel.ids import ActionDefinitionId
from attune.store.database import Tx
from attune.store.schema import action_definition

_KEPT_AT_MOST: Final = 10_000
_SURROUNDINGS = """
    SELECT p.version, p.pack_dir, r.execution_config
      FROM pack p LEFT JOIN runtime r ON r.id = :runtime
     WHERE p.id = :pack
"""
_BY_DIGEST = "SELECT id FROM action_definition WHERE digest = :digest"


class _Surroundings(msgspec.Struct, frozen=True):
    version: str
    pack_dir: str | None
    execution_config: dict[str, Any] | None


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    id: ActionDefinitionId
    digest: str
    action_ref: str
    definition: ActionDefinition
    created: datetime
    updated: datetime


async def definition_of(tx: Tx, action: Action, now: datetime) -> ActionDefinitionId:
    """The id of what the action is now; the same content always has the same id."""
    definition = await _definition(tx, action)
    digest = hashlib.sha256(msgspec.json.encode(definition, order="sorted")).hexdigest()
    found = await tx.first(int, _BY_DIGEST, digest=digest)
    if found is None:
        [new] = await tx.next_ids(action_definition)
        kept = _Kept(
            id=ActionDefinitionId(new),
            digest=digest,
            action_ref=action.ref,
            definition=definition,
            created=now,
            updated=now,
        )
        await tx.insert(action_definition, [kept], skip_existing=True)
        found = await tx.one(int, _BY_DIGEST, digest=digest)
    return ActionDefinitionId(found)


class Definitions:
    """The definitions that a process has met. They never change, so what is kept is never stale."""

    def __init__(self) -> None:
        self._kept: dict[ActionDefinitionId, ActionDefinition] = {}

    def known(
        self, ids: Iterable[ActionDefinitionId]
    ) -> dict[ActionDefinitionId, ActionDefinition] | None:
        """All of them without asking the database, or None."""
        kept = self._kept
        wanted = set(ids)
        return {each: kept[each] for each in wanted} if wanted <= kept.keys() else None

    async def get(
        self, tx: Tx, ids: Iterable[ActionDefinitionId]
    ) -> dict[ActionDefinitionId, ActionDefinition]:
        if len(self._kept) >= _KEPT_AT_MOST:
            self._kept = {}
        found: dict[ActionDefinitionId, ActionDefinition] = {}
        for each in set(ids):
            found[each] = self._kept.get(each) or await definition(tx, each)
        self._kept |= found
        return found


async def definition(tx: Tx, definition_id: ActionDefinitionId) -> ActionDefinition:
    found = await tx.first(
        msgspec.Raw, "SELECT definition FROM action_definition WHERE id = :id", id=definition_id
    )
    if found is None:
        raise NotFound(f"There is no action definition {definition_id}.", id=definition_id)
    return msgspec.json.decode(found, type=ActionDefinition)


async def _definition(tx: Tx, action: Action) -> ActionDefinition:
    around = await tx.one(_Surroundings, _SURROUNDINGS, runtime=action.runtime, pack=action.pack)
    return ActionDefinition(
        action_ref=action.ref,
        pack_ref=action.pack_ref,
        pack_version=around.version,
        pack_dir=around.pack_dir,
        entrypoint=action.entrypoint,
        is_inline=action.is_adhoc and action.runtime_ref == SHELL,
        runtime_ref=action.runtime_ref,
        runtime_version_constraint=action.runtime_version_constraint,
        execution_config=around.execution_config or {},
        param_schema=action.param_schema,
        out_schema=action.out_schema,
        parameter_delivery=action.parameter_delivery,
        parameter_format=action.parameter_format,
        output_format=action.output_format,
        timeout_seconds=action.timeout_seconds,
        on_worker_lost=action.on_worker_lost,
        required_worker_runtimes=action.required_worker_runtimes,
        limits=action.limits,
        reuse=action.reuse,
    )
