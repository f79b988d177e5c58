"""A lane as it stands now, read without a lock: for those who only want to know.

Its gates are those of an admission, the same functions over the same values, so what is told is what is decided.
Nothing is written, not even the past starts of a rate taken away.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import LaneId, PolicyId, PoolId
from attune.pipeline.policies.book import Binding
from attune.pipeline.policies.decide import WHOLE, pool_keys
from attune.pipeline.policies.gates import Starts
from attune.pipeline.policies.model import EffectivePolicy, Gate
from attune.pipeline.queues.decide import gates
from attune.pipeline.queues.making import first_limit
from attune.pipeline.queues.model import Lane, Pool
from attune.pipeline.queues.rates import counted
from attune.store.database import Tx

_FROM_SETTINGS: Final = ("ageing", "longest")
_COLUMNS = ", ".join(f"l.{each}" for each in Lane.__struct_fields__ if each not in _FROM_SETTINGS)
# The names in this statement are those of our own struct.
_LANE: Final = f"""
    SELECT {_COLUMNS},
           (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing,
           (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_queue_length') AS longest
      FROM lane l
"""  # noqa: S608
_BY_ID: Final = f"{_LANE} WHERE l.id = :id"
_BY_KEY: Final = f"{_LANE} WHERE l.action_ref = :ref AND l.group_key = :group_key"
_POOL: Final = "SELECT id, policy, key, active_count, total_accepted FROM pool"
_POOLS_BY_ID: Final = f"{_POOL} WHERE id = ANY(:ids::bigint[])"
_POOLS_BY_KEY: Final = f"{_POOL} WHERE policy = :policy AND key = ANY(:keys::text[])"
_NOT_YET: Final = LaneId(0)


class LaneView(msgspec.Struct, frozen=True):
    """`pools` are the lane's, by key. A lane that nothing has joined yet has the id 0."""

    lane: Lane
    pools: Mapping[str, Pool] = {}
    starts: Mapping[PoolId, Starts] = {}

    def gates(self, now: datetime) -> list[Gate]:
        """Every gate between the lane's head and its slot, open ones too."""
        return gates(self.lane, self.pools, self.starts, now)


async def lane_view(tx: Tx, lane_id: LaneId, now: datetime) -> LaneView:
    """The lane under the policy that it follows now."""
    lane = await tx.one(Lane, _BY_ID, id=lane_id)
    ids = list(lane.pools or ())
    found = await tx.all(Pool, _POOLS_BY_ID, ids=ids) if ids else []
    return await _view(tx, lane, {pool.key: pool for pool in found}, now)


async def view_under(tx: Tx, binding: Binding, group_key: str, now: datetime) -> LaneView:
    """The lane as the policy in effect wants it, whether it is there and arranged already or not."""
    policy = binding.policy
    lane = await tx.first(Lane, _BY_KEY, ref=binding.action_ref, group_key=group_key)
    if lane is None:
        whole = await tx.first(Lane, _BY_KEY, ref=binding.action_ref, group_key=WHOLE)
        lane = _new(binding, group_key, whole, now)
    elif lane.stamp != binding.stamp:
        limit = first_limit(policy, lane.max_concurrent)
        lane = msgspec.structs.replace(lane, terms=policy, max_concurrent=limit)
    return await _view(tx, lane, await _pools_under(tx, policy, group_key), now)


def _new(binding: Binding, group_key: str, whole: Lane | None, now: datetime) -> Lane:
    """A new lane is paused if the action's queue is; settings are everybody's."""
    return Lane(
        id=_NOT_YET,
        action_ref=binding.action_ref,
        group_key=group_key,
        paused=whole is not None and whole.paused,
        last_enqueued_at=now,
        terms=binding.policy,
        max_concurrent=first_limit(binding.policy, None),
        longest=whole.longest if whole else None,
    )


async def _pools_under(tx: Tx, policy: EffectivePolicy | None, group_key: str) -> dict[str, Pool]:
    """One that is not there yet has counted nothing."""
    keys = pool_keys(policy, group_key)
    if policy is None or not keys:
        return {}
    found = await tx.all(Pool, _POOLS_BY_KEY, policy=policy.policy, keys=list(keys))
    return {key: _empty(policy.policy, key) for key in keys} | {pool.key: pool for pool in found}


def _empty(policy: PolicyId, key: str) -> Pool:
    return Pool(id=PoolId(0), policy=policy, key=key)


async def _view(tx: Tx, lane: Lane, pools: dict[str, Pool], now: datetime) -> LaneView:
    rate = lane.rate
    if rate is None:
        return LaneView(lane, pools)
    pool = pools[WHOLE].id
    return LaneView(lane, pools, {pool: await counted(tx, pool, rate, now)})
