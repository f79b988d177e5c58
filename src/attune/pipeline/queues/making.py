"""Lanes and pools as a policy wants them: made, and put under another one."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.versions import CatalogTaken
from attune.kernel.errors import Outdated
from attune.kernel.ids import LaneId, PolicyId, PoolId
from attune.pipeline.policies.book import Binding
from attune.pipeline.policies.decide import (
    grouping_of,
    pool_keys,
    shape_of,
)
from attune.pipeline.policies.model import EffectivePolicy
from attune.pipeline.queues import locking
from attune.pipeline.queues.decisions import LimitChanged
from attune.pipeline.queues.steps import Lanes
from attune.store import schema
from attune.store.database import Tx
from attune.store.values import Json

# Lanes are held by now, and who has the version may be about to want them: so nobody waits for it here.
_VERSION: Final = "SELECT version FROM catalog_version FOR SHARE SKIP LOCKED"
_PAUSED: Final = """
    SELECT paused FROM lane WHERE action_ref = :ref AND group_key = '' FOR SHARE
"""
_POOL_IDS: Final = """
    SELECT id FROM pool WHERE policy = :policy AND key = ANY(:keys::text[]) ORDER BY id
"""
_BIND: Final = """
    UPDATE lane SET policy = :policy, terms = :terms, stamp = :stamp, pools = :pools, arranged = :version
     WHERE id = :id
"""

_DEAD: Final = """
    active_count = 0 AND NOT EXISTS (SELECT 1 FROM policy p WHERE p.id = pool.policy)
    AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.policy = pool.policy)
"""
# The condition in these statements is our own text.
_FORGET_STARTS: Final = f"""
    DELETE FROM admission WHERE pool = ANY(ARRAY(SELECT id FROM pool WHERE {_DEAD}))
"""  # noqa: S608
_FORGET_POOLS: Final = f"DELETE FROM pool WHERE {_DEAD}"  # noqa: S608


class _NewLane(msgspec.Struct, frozen=True, kw_only=True):
    id: LaneId
    action_ref: str
    group_key: str
    policy: PolicyId | None
    terms: EffectivePolicy | None
    stamp: str
    arranged: int
    max_concurrent: int | None
    pools: tuple[PoolId, ...] | None
    last_enqueued_at: datetime
    created: datetime
    updated: datetime
    paused: bool
    next_sequence: int = 1
    queue_length: int = 0
    active_count: int = 0
    total_enqueued: int = 0
    total_completed: int = 0


class _NewPool(msgspec.Struct, frozen=True, kw_only=True):
    id: PoolId
    policy: PolicyId
    key: str
    created: datetime
    updated: datetime
    active_count: int = 0
    total_accepted: int = 0


async def make_lanes(lanes: Lanes, version: int, binding: Binding, groups: Collection[str]) -> None:
    """Nobody may change the catalog until this commit, or the new lane would be born under an old policy."""
    tx = lanes.tx
    present = await tx.first(int, _VERSION)
    if present is None:
        raise CatalogTaken("The catalog is being changed, or a queue switched.")
    if present != version:
        raise Outdated("The catalog has changed meanwhile.")
    paused = await tx.first(bool, _PAUSED, ref=binding.action_ref) or False
    ids = await tx.next_ids(schema.lane, len(groups))
    new = [
        await _new_lane(lanes, version, binding, LaneId(i), group, paused)
        for i, group in zip(ids, sorted(groups), strict=True)
    ]
    await tx.insert(schema.lane, new, skip_existing=True)
    await locking.lock_by_keys(tx, {(binding.action_ref, group) for group in groups}, lanes.held)


async def forget_pools(tx: Tx) -> None:
    """Those of policies that are gone, once no lane is counted in them."""
    await tx.execute(_FORGET_STARTS)
    await tx.execute(_FORGET_POOLS)


async def bind(
    lanes: Lanes,
    version: int,
    stamp: str,
    lane_id: LaneId,
    policy: EffectivePolicy | None,
) -> None:
    """The lane goes under its new policy with whatever it holds."""
    lane = lanes.held.lanes[lane_id]
    pools = await _pools(lanes, policy, lane.group_key)
    lanes.count(lane, active=-lane.active_count)
    after = msgspec.structs.replace(
        lane,
        terms=policy,
        stamp=stamp,
        arranged=version,
        pools=pools,
        max_concurrent=first_limit(policy, lane.max_concurrent),
    )
    name = f"the policy {policy.policy_ref}" if policy else "no policy"
    change = LimitChanged(lane.max_concurrent, after.max_concurrent, f"{name} is in effect")
    lanes.change(after, change)
    lanes.count(after, active=after.active_count)
    await lanes.tx.execute(
        _BIND,
        id=lane.id,
        policy=policy.policy if policy else None,
        terms=policy,
        stamp=stamp,
        pools=None if pools is None else Json(pools),
        version=version,
    )


def first_limit(policy: EffectivePolicy | None, before: int | None) -> int | None:
    """The lane's limit under the policy; one that follows the action starts from where it is, or from the floor."""
    if policy is None or policy.ceiling is None:
        return policy.limit if policy else None
    floor = policy.floor or 1
    return min(max(before or floor, floor), policy.ceiling)


async def _pools(
    lanes: Lanes, policy: EffectivePolicy | None, group_key: str
) -> tuple[PoolId, ...] | None:
    """The pools of a lane under the policy, made if need be, and locked."""
    keys = pool_keys(policy, group_key)
    if policy is None or not keys:
        return None
    tx = lanes.tx
    found = await tx.all(PoolId, _POOL_IDS, policy=policy.policy, keys=list(keys))
    if len(found) < len(keys):
        ids = await tx.next_ids(schema.pool, len(keys))
        new = [
            _NewPool(
                id=PoolId(i), policy=policy.policy, key=key, created=lanes.now, updated=lanes.now
            )
            for i, key in zip(ids, keys, strict=True)
        ]
        await tx.insert(schema.pool, new, skip_existing=True)
        found = await tx.all(PoolId, _POOL_IDS, policy=policy.policy, keys=list(keys))
    await locking.lock_pools(tx, found, lanes.held)
    return tuple(found)


async def _new_lane(
    lanes: Lanes, version: int, binding: Binding, new: LaneId, group_key: str, paused: bool
) -> _NewLane:
    is_ours = shape_of(group_key) == grouping_of(binding.policy)
    # Otherwise it is the switch of an action that has groups, which nobody joins.
    policy = binding.policy if is_ours else None
    return _NewLane(
        id=new,
        action_ref=binding.action_ref,
        group_key=group_key,
        policy=policy.policy if policy else None,
        terms=policy,
        stamp=binding.stamp,
        arranged=version,
        max_concurrent=first_limit(policy, None),
        pools=await _pools(lanes, policy, group_key),
        paused=paused,
        last_enqueued_at=lanes.now,
        created=lanes.now,
        updated=lanes.now,
    )
