"""Triggers made by hand, and changes to any. Their webhooks are in `webhooks.py`."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.links import relink
from attune.catalog.model import Trigger
from attune.catalog.refs import check_member_ref, pack_part
from attune.catalog.rows import PACKS, TRIGGERS
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.ids import TriggerId
from attune.store.database import Tx


class NewTrigger(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    label: str
    pack_ref: str | None = None
    description: str | None = None
    enabled: bool = True
    param_schema: dict[str, Any] | None = None
    out_schema: dict[str, Any] | None = None
    tags: list[str] = []


class TriggerChanges(msgspec.Struct, frozen=True, kw_only=True):
    label: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    param_schema: dict[str, Any] | UnsetType | None = UNSET
    out_schema: dict[str, Any] | UnsetType | None = UNSET
    tags: list[str] | UnsetType = UNSET


async def create_trigger(tx: Tx, new: NewTrigger, now: datetime) -> Trigger:
    values = msgspec.structs.asdict(new)
    check_member_ref(new.ref, new.pack_ref or pack_part(new.ref))
    check_fields(values)
    pack = await rows.get(tx, PACKS, new.pack_ref) if new.pack_ref else None
    trigger = Trigger(
        id=TriggerId(await rows.next_id(tx, TRIGGERS)),
        pack=pack.id if pack else None,
        is_adhoc=True,
        created=now,
        updated=now,
        **values,
    )
    await rows.add(tx, TRIGGERS, trigger)
    await relink(tx, TRIGGERS.noun, [trigger.ref])
    return trigger


async def update_trigger(tx: Tx, key: str | int, changes: TriggerChanges, now: datetime) -> Trigger:
    values = given(changes)
    check_fields(values)
    return await rows.change(tx, TRIGGERS, await rows.get(tx, TRIGGERS, key), values, now)


async def delete_trigger(tx: Tx, key: str | int) -> Trigger:
    """Rules keep its ref and rest until it is back."""
    trigger = await rows.get(tx, TRIGGERS, key)
    await rows.remove(tx, TRIGGERS, trigger)
    return trigger
