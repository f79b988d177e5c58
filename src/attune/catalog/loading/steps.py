"""Loading a pack: all of it or nothing, in one transaction.

The order is permission sets, runtimes, triggers, actions, policies, rules, because each may name the ones before; what
the files no longer have is removed the other way round. Ids stay, and so does what users made or switched.
"""

from datetime import datetime
from typing import Any, TypeVar

import msgspec

from attune.catalog import rows
from attune.catalog.links import relink
from attune.catalog.loading.checks import (
    Schemas,
    check_links,
    parameter_warnings,
    shadow_warnings,
)
from attune.catalog.loading.decide import Plan, Values, carried_config, plan
from attune.catalog.loading.model import Changes, LoadSummary, Mode
from attune.catalog.model import Pack, Row
from attune.catalog.rows import (
    ACTIONS,
    PACKS,
    PERMISSION_SETS,
    POLICIES,
    RULES,
    RUNTIMES,
    TRIGGERS,
    Kind,
)
from attune.catalog.sources.model import PackSource, Source
from attune.catalog.steps.policies import shadows
from attune.kernel.errors import Conflict, Contention
from attune.kernel.ids import PackId
from attune.store.database import Tx

R = TypeVar("R", bound=Row)

_TRIGGER_SCHEMAS = "SELECT ref, param_schema FROM trigger WHERE ref = ANY(:refs::text[])"
_ACTION_SCHEMAS = "SELECT ref, param_schema FROM action WHERE ref = ANY(:refs::text[])"
_CONTENT = ("permission_sets", "runtimes", "triggers", "actions", "policies", "rules")


async def load_pack(
    tx: Tx,
    source: PackSource,
    now: datetime,
    *,
    pack_dir: str | None = None,
    mode: Mode = Mode.FORCE,
) -> LoadSummary:
    """Loading the same content twice changes nothing. `pack_dir` is where its files are kept."""
    pack, created = await _locked_pack(tx, source, now)
    if not created and mode is Mode.NEW:
        raise Conflict(f"There is a pack '{pack.ref}' already; force updates it.", ref=pack.ref)
    if not created and mode is Mode.CHANGED and pack.pack_dir == pack_dir is not None:
        return LoadSummary(
            pack_id=pack.id,
            pack_ref=pack.ref,
            version=pack.version,
            pack=Changes(unchanged=(pack.ref,)),
            warnings=source.warnings,
        )
    loader = _Loader(tx, pack.id, source, now)
    updated = await rows.change(tx, PACKS, pack, _pack_values(pack, source, pack_dir), now)
    summary = await loader.load(_pack_changes(pack, updated, created=created))
    if summary.changed:
        await rows.announce(tx, pack.ref)
    return summary


class _Schema(msgspec.Struct, frozen=True):
    ref: str
    param_schema: dict[str, Any] | None


class _Loader:
    """One load on its way; it holds what several kinds need from each other."""

    def __init__(self, tx: Tx, pack: PackId, source: PackSource, now: datetime) -> None:
        self._tx = tx
        self._pack = pack
        self._source = source
        self._now = now
        self._removals: list[tuple[Kind[Any], list[Any]]] = []
        self._known: dict[str, dict[str, int]] = {}

    async def load(self, pack_changes: Changes) -> LoadSummary:
        source = self._source
        await self._check_links()
        permission_sets = await self._apply(PERMISSION_SETS, source.permission_sets, "grants")
        runtimes = await self._apply(RUNTIMES, source.runtimes, "")
        triggers = await self._apply(TRIGGERS, source.triggers, "enabled")
        actions = await self._apply(ACTIONS, source.actions, "enabled")
        policies = await self._apply(POLICIES, source.policies, "enabled")
        rules = await self._apply(RULES, source.rules, "enabled")
        for kind, gone in reversed(self._removals):
            for row in gone:
                await rows.remove(self._tx, kind, row)
        return LoadSummary(
            pack_id=self._pack,
            pack_ref=source.ref,
            version=source.version,
            pack=pack_changes,
            permission_sets=permission_sets,
            runtimes=runtimes,
            triggers=triggers,
            actions=actions,
            policies=policies,
            rules=rules,
            warnings=(
                *source.warnings,
                *await self._parameter_warnings(),
                *await self._shadow_warnings(),
            ),
        )

    async def _apply(self, kind: Kind[R], sources: tuple[Source, ...], switch: str) -> Changes:
        wanted = {source.ref: await self._values(source) for source in sources}
        present = await rows.of_pack(self._tx, kind, self._pack, list(wanted))
        planned = plan(kind.noun, self._pack, present, wanted, switch)
        await self._create(kind, planned)
        for row, differing in planned.update.values():
            await rows.change(self._tx, kind, row, differing, self._now)
        self._removals.append((kind, list(planned.remove.values())))
        return planned.changes

    async def _create(self, kind: Kind[R], planned: Plan[R]) -> None:
        ids = await self._tx.next_ids(kind.table, len(planned.create)) if planned.create else []
        await self._tx.insert(
            kind.table,
            [
                kind.row(id=new, ref=ref, created=self._now, updated=self._now, **values)
                for new, (ref, values) in zip(ids, planned.create.items(), strict=True)
            ],
        )
        await relink(self._tx, kind.noun, list(planned.create))

    async def _values(self, source: Source) -> Values:
        """A source's fields are the columns; the ids of what it names are looked up."""
        values: dict[str, Any] = {
            **msgspec.structs.asdict(source),
            "pack": self._pack,
            "pack_ref": self._source.ref,
            "is_adhoc": False,
        }
        del values["file"], values["ref"]
        for field, kind in (("runtime", RUNTIMES), ("trigger", TRIGGERS), ("action", ACTIONS)):
            if (ref := values.get(f"{field}_ref")) is not None:
                values[field] = (await self._ids(kind))[ref]
        return values

    async def _ids(self, kind: Kind[Any]) -> dict[str, int]:
        """Asked for only after the kind has been applied, so that it is complete."""
        if kind.noun not in self._known:
            self._known[kind.noun] = await rows.ids(self._tx, kind)
        return self._known[kind.noun]

    async def _check_links(self) -> None:
        source = self._source
        check_links(
            source,
            await self._refs_after(RUNTIMES, source.runtimes),
            await self._refs_after(TRIGGERS, source.triggers),
            await self._refs_after(ACTIONS, source.actions),
            await rows.ids(self._tx, PACKS),
        )

    async def _refs_after(self, kind: Kind[Any], sources: tuple[Source, ...]) -> set[str]:
        """The refs that there will be: a rule may not rest on what its own update removes."""
        others = "pack IS NULL OR pack <> :pack OR is_adhoc"
        kept = await rows.ids(self._tx, kind, others, pack=self._pack)
        return {*kept, *(source.ref for source in sources)}

    async def _parameter_warnings(self) -> list[str]:
        rules = self._source.rules
        triggers = await self._schemas(_TRIGGER_SCHEMAS, [rule.trigger_ref for rule in rules])
        actions = await self._schemas(_ACTION_SCHEMAS, [rule.action_ref for rule in rules])
        return list(parameter_warnings(rules, triggers, actions))

    async def _shadow_warnings(self) -> list[str]:
        ids = await rows.ids(self._tx, POLICIES, "pack = :pack AND enabled", pack=self._pack)
        first = await shadows(self._tx, list(ids.values()))
        shadowed = {ref: first[number] for ref, number in ids.items() if number in first}
        return list(shadow_warnings(self._source.policies, shadowed))

    async def _schemas(self, sql: str, refs: list[str]) -> Schemas:
        found = await self._tx.all(_Schema, sql, refs=refs) if refs else []
        return {schema.ref: schema.param_schema for schema in found}


async def _locked_pack(tx: Tx, source: PackSource, now: datetime) -> tuple[Pack, bool]:
    """The pack's row, made if need be. Whoever loads the same pack waits here for the other."""
    present = await rows.lock(tx, PACKS, source.ref)
    if present is not None:
        return present, False
    new = Pack(
        id=PackId(await rows.next_id(tx, PACKS)),
        ref=source.ref,
        created=now,
        updated=now,
        declared={"config": source.config},
        **_file_values(source),
    )
    created = await tx.insert(PACKS.table, [new], skip_existing=True) == 1
    if created:
        return new, True
    present = await rows.lock(tx, PACKS, source.ref)
    if present is None:
        raise Contention(f"The pack '{source.ref}' was removed while it was loaded.")
    return present, False


def _file_values(source: PackSource) -> dict[str, Any]:
    fields = msgspec.structs.asdict(source)
    left_out = ("ref", "warnings", *_CONTENT)
    return {name: value for name, value in fields.items() if name not in left_out}


def _pack_values(pack: Pack, source: PackSource, pack_dir: str | None) -> Values:
    before = (pack.declared or {}).get("config", {})
    return {
        **_file_values(source),
        "config": carried_config(pack.config, before, source.config),
        "declared": {"config": source.config},
        "pack_dir": pack_dir or pack.pack_dir,
    }


def _pack_changes(before: Pack, after: Pack, *, created: bool) -> Changes:
    refs = (before.ref,)
    if created:
        return Changes(created=refs)
    return Changes(unchanged=refs) if before is after else Changes(updated=refs)
