"""Policies made by hand, and changes to any. A change counts for what waits already: limits are read afresh."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.model import Pack, Policy
from attune.catalog.policy_rules import policy_faults, without_effect
from attune.catalog.refs import check_member_ref, label_from, pack_part
from attune.catalog.rows import ACTIONS, PACKS, POLICIES
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import PolicyId
from attune.store.database import Tx


class NewPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The gates without an effect yet are here so that a policy which has them is refused by name."""

    ref: str
    scope_type: str
    scope_ref: str | None = None
    pack_ref: str | None = None
    name: str | None = None
    description: str | None = None
    enabled: bool = True
    priority: int = 0
    concurrency_limit: int | None = None
    concurrency_method: str = "enqueue"
    concurrency_parameters: list[str] = []
    rate_limit: dict[str, Any] | None = None
    quotas: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    blackouts: list[dict[str, Any]] = []
    tags: list[str] = []


class PolicyChanges(msgspec.Struct, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    scope_type: str | UnsetType = UNSET
    scope_ref: str | UnsetType | None = UNSET
    concurrency_limit: int | UnsetType = UNSET
    concurrency_method: str | UnsetType = UNSET
    concurrency_parameters: list[str] | UnsetType = UNSET
    rate_limit: dict[str, Any] | UnsetType | None = UNSET
    quotas: list[dict[str, Any]] | UnsetType = UNSET
    windows: list[dict[str, Any]] | UnsetType = UNSET
    blackouts: list[dict[str, Any]] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET


async def create_policy(tx: Tx, new: NewPolicy, now: datetime) -> Policy:
    """An unknown pack or action is `NotFound`; what would have no effect is `InvalidInput`."""
    check_member_ref(new.ref, new.pack_ref or pack_part(new.ref))
    values = msgspec.structs.asdict(new)
    values["name"] = label_from(new.ref) if new.name is None else new.name
    _check(values)
    pack = await _pack(tx, new)
    values["pack_ref"] = pack.ref if pack else None
    values["scope_ref"] = await _action_ref(tx, new.scope_ref)
    policy = Policy(
        id=PolicyId(await rows.next_id(tx, POLICIES)),
        pack=pack.id if pack else None,
        is_adhoc=True,
        created=now,
        updated=now,
        **values,
    )
    return await rows.add(tx, POLICIES, policy)


async def update_policy(tx: Tx, key: str | int, changes: PolicyChanges, now: datetime) -> Policy:
    values = given(changes)
    policy = await rows.get(tx, POLICIES, key)
    _check({**msgspec.structs.asdict(policy), **values})
    if "scope_ref" in values:
        values["scope_ref"] = await _action_ref(tx, values["scope_ref"])
    return await rows.change(tx, POLICIES, policy, values, now)


async def delete_policy(tx: Tx, key: str | int) -> Policy:
    """What it held back may run from now on."""
    policy = await rows.get(tx, POLICIES, key)
    await rows.remove(tx, POLICIES, policy)
    return policy


def _check(values: Mapping[str, Any]) -> None:
    """`InvalidInput` that names every field which breaks a rule, or has no effect yet."""
    check_fields({"name": values["name"]})
    problems = {**without_effect(values), **policy_faults(values)}
    if problems:
        text = "; ".join(f"{field}: {rule}" for field, rule in problems.items())
        raise InvalidInput(text, field=next(iter(problems)), problems=problems)


async def _pack(tx: Tx, new: NewPolicy) -> Pack | None:
    """The pack that is named; else the one that the ref begins with, if there is such a pack."""
    if new.pack_ref is not None:
        return await rows.get(tx, PACKS, new.pack_ref)
    return await rows.find(tx, PACKS, pack_part(new.ref))


async def _action_ref(tx: Tx, key: str | None) -> str | None:
    """The ref of an action that is there; a policy over one that is not would be a slip."""
    return None if key is None else (await rows.get(tx, ACTIONS, key)).ref
