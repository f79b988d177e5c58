"""Runtimes made by hand, and changes to any."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.links import relink
from attune.catalog.model import Runtime
from attune.catalog.refs import check_member_ref, pack_part
from attune.catalog.rows import PACKS, RUNTIMES
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.ids import RuntimeId
from attune.store.database import Tx


class NewRuntime(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    name: str
    pack_ref: str | None = None
    aliases: list[str] = []
    description: str | None = None
    distributions: dict[str, Any] = {}
    installation: Any = None
    execution_config: dict[str, Any] = {}


class RuntimeChanges(msgspec.Struct, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    aliases: list[str] | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    distributions: dict[str, Any] | UnsetType = UNSET
    installation: Any = UNSET
    execution_config: dict[str, Any] | UnsetType = UNSET


async def create_runtime(tx: Tx, new: NewRuntime, now: datetime) -> Runtime:
    values = msgspec.structs.asdict(new)
    check_member_ref(new.ref, new.pack_ref or pack_part(new.ref))
    check_fields(values)
    pack = await rows.get(tx, PACKS, new.pack_ref) if new.pack_ref else None
    runtime = Runtime(
        id=RuntimeId(await rows.next_id(tx, RUNTIMES)),
        pack=pack.id if pack else None,
        is_adhoc=True,
        created=now,
        updated=now,
        **values,
    )
    await rows.add(tx, RUNTIMES, runtime)
    await relink(tx, RUNTIMES.noun, [runtime.ref])
    return runtime


async def update_runtime(tx: Tx, key: str | int, changes: RuntimeChanges, now: datetime) -> Runtime:
    values = given(changes)
    check_fields(values)
    return await rows.change(tx, RUNTIMES, await rows.get(tx, RUNTIMES, key), values, now)


async def delete_runtime(tx: Tx, key: str | int) -> Runtime:
    """Actions keep its ref; they cannot run until it is back."""
    runtime = await rows.get(tx, RUNTIMES, key)
    await rows.remove(tx, RUNTIMES, runtime)
    return runtime
