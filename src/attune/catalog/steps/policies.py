"""Policies made by hand, changes to any, and which of them are in effect."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.model import Pack, Policy
from attune.catalog.policy_gates import GATES, filled
from attune.catalog.policy_rules import policy_faults, settled
from attune.catalog.refs import check_member_ref, label_from, pack_part
from attune.catalog.rows import ACTIONS, PACKS, POLICIES
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import PolicyId
from attune.store.database import Tx

# Of all policies over one scope the first is in effect: by priority, then by age.
_SHADOWS: Final = """
    SELECT p.id,
           (SELECT q.ref FROM policy q
             WHERE q.enabled AND q.scope_type = p.scope_type
               AND (q.scope_ref = p.scope_ref OR q.scope_type = 'global')
               AND (q.priority > p.priority OR (q.priority = p.priority AND q.id < p.id))
             ORDER BY q.priority DESC, q.id LIMIT 1) AS ref
      FROM policy p WHERE p.id = ANY(:ids::bigint[])
"""


class NewPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A `concurrency_limit` of "auto" follows the action between floor and ceiling."""

    ref: str
    scope_type: str
    scope_ref: str | None = None
    pack_ref: str | None = None
    name: str | None = None
    description: str | None = None
    enabled: bool = True
    priority: int = 0
    concurrency_limit: int | str | None = None
    concurrency_floor: int | None = None
    concurrency_ceiling: int | None = None
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
    concurrency_limit: int | str | UnsetType | None = UNSET
    concurrency_floor: int | UnsetType | None = UNSET
    concurrency_ceiling: int | UnsetType | None = UNSET
    concurrency_method: str | UnsetType = UNSET
    concurrency_parameters: list[str] | UnsetType = UNSET
    rate_limit: dict[str, Any] | UnsetType | None = UNSET
    quotas: list[dict[str, Any]] | UnsetType = UNSET
    windows: list[dict[str, Any]] | UnsetType = UNSET
    blackouts: list[dict[str, Any]] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET


class _Shadow(msgspec.Struct, frozen=True):
    id: int
    ref: str | None


async def create_policy(tx: Tx, new: NewPolicy, now: datetime) -> Policy:
    """An unknown pack or action is `NotFound`."""
    check_member_ref(new.ref, new.pack_ref or pack_part(new.ref))
    values = settled(msgspec.structs.asdict(new), {})
    values["name"] = label_from(new.ref) if new.name is None else new.name
    _check(values)
    pack = await _pack(tx, new)
    values["pack_ref"] = pack.ref if pack else None
    values["scope_ref"] = await _scope_ref(tx, new.scope_type, new.scope_ref)
    policy = Policy(
        id=PolicyId(await rows.next_id(tx, POLICIES)),
        pack=pack.id if pack else None,
        is_adhoc=True,
        created=now,
        updated=now,
        **_filled(values),
    )
    return await rows.add(tx, POLICIES, policy)


async def update_policy(tx: Tx, key: str | int, changes: PolicyChanges, now: datetime) -> Policy:
    policy = await rows.get(tx, POLICIES, key)
    before = msgspec.structs.asdict(policy)
    values = settled(given(changes), before)
    after = {**before, **values}
    _check(after)
    if "scope_type" in values or "scope_ref" in values:
        values["scope_ref"] = await _scope_ref(tx, after["scope_type"], after["scope_ref"])
    return await rows.change(tx, POLICIES, policy, _filled(values), now)


async def delete_policy(tx: Tx, key: str | int) -> Policy:
    policy = await rows.get(tx, POLICIES, key)
    await rows.remove(tx, POLICIES, policy)
    return policy


async def shadows(tx: Tx, ids: Collection[int]) -> dict[int, str]:
    """Those of these policies that have no effect, with the ref of the one over the same scope that has it."""
    found = await tx.all(_Shadow, _SHADOWS, ids=list(ids)) if ids else []
    return {each.id: each.ref for each in found if each.ref is not None}


def _check(values: Mapping[str, Any]) -> None:
    """`InvalidInput` that names every field which breaks a rule."""
    check_fields({"name": values["name"]})
    problems = policy_faults(values)
    if problems:
        text = "; ".join(f"{field}: {rule}" for field, rule in problems.items())
        raise InvalidInput(text, field=next(iter(problems)), problems=problems)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: filled(name, v) if name in GATES else v for name, v in values.items()}


async def _pack(tx: Tx, new: NewPolicy) -> Pack | None:
    """The pack that is named; else the one that the ref begins with, if there is such a pack."""
    if new.pack_ref is not None:
        return await rows.get(tx, PACKS, new.pack_ref)
    return await rows.find(tx, PACKS, pack_part(new.ref))


async def _scope_ref(tx: Tx, scope_type: str, key: str | None) -> str | None:
    """The ref of an action or pack that is there; a policy over one that is not would be a slip."""
    if scope_type == "global" or key is None:
        return None
    if scope_type == "pack":
        return (await rows.get(tx, PACKS, key)).ref
    return (await rows.get(tx, ACTIONS, key)).ref
