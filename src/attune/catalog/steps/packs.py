"""Packs made by hand, and changes to any pack. Those with files are loaded by `loading/`."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.model import Pack
from attune.catalog.refs import check_pack_ref
from attune.catalog.rows import PACKS
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.ids import IdentityId, PackId
from attune.store.database import Tx


class NewPack(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    label: str
    version: str
    description: str | None = None
    is_standard: bool = False
    conf_schema: dict[str, Any] = {}
    config: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    tags: list[str] = []
    runtime_deps: list[str] = []
    dependencies: list[str] = []
    owner_identity: IdentityId | None = None


class PackChanges(msgspec.Struct, frozen=True, kw_only=True):
    label: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    is_standard: bool | UnsetType = UNSET
    conf_schema: dict[str, Any] | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    runtime_deps: list[str] | UnsetType = UNSET
    dependencies: list[str] | UnsetType = UNSET


async def create_pack(tx: Tx, new: NewPack, now: datetime) -> Pack:
    values = msgspec.structs.asdict(new)
    check_pack_ref(new.ref)
    check_fields(values)
    number = PackId(await rows.next_id(tx, PACKS))
    return await rows.add(tx, PACKS, Pack(id=number, created=now, updated=now, **values))


async def update_pack(tx: Tx, key: str | int, changes: PackChanges, now: datetime) -> Pack:
    values = given(changes)
    check_fields(values)
    return await rows.change(tx, PACKS, await rows.get(tx, PACKS, key), values, now)


async def delete_pack(tx: Tx, key: str | int) -> Pack:
    """All that is in it goes with it; executions and what they run stay, and so do its files."""
    pack = await rows.get(tx, PACKS, key)
    await rows.remove(tx, PACKS, pack)
    return pack
