"""Lanes follow their policies: made under the one in effect, and arranged anew when it changes.

A lane keeps the words of its policy, so an admission needs nothing but the lane. A change of policy reaches what
already waits in one transaction, under the locks of all lanes of the action: who waits keeps the order, who holds a
slot keeps it, and where executions are grouped otherwise they move to the lanes of their groups.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.kernel.errors import Contention, NotFound
from attune.kernel.ids import ExecutionId, IdentityId, LaneId, PolicyId, PoolId
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.policies.book import Binding, PolicyBook
from attune.pipeline.policies.decide import (
    WHOLE,
    group_of,
    grouping_of,
    may_be_group,
    pool_keys,
    shape_of,
)
from attune.pipeline.policies.model import EffectivePolicy
from attune.pipeline.queues import locking
from attune.pipeline.queues.decisions import Came, LimitChanged, Went
from attune.pipeline.queues.locking import Locked
from attune.pipeline.queues.model import QueueTerms, State
from attune.pipeline.queues.steps import Lanes
from attune.store import schema
from attune.store.database import Tx
from attune.store.values import Json

Key = tuple[str, str]

_VERSION: Final = "SELECT version FROM catalog_version FOR SHARE"
_PAUSED: Final = """
    SELECT paused FROM lane WHERE action_ref = :ref AND group_key = '' FOR SHARE
"""
_POOL_IDS: Final = """
    SELECT id FROM pool WHERE policy = :policy AND key = ANY(:keys::text[]) ORDER BY id
"""
_STANDING: Final = """
    SELECT e.execution, e.lane, e.band, e.sequence, e.state, e.enqueued_at, x.config, x.executor
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.lane = ANY(:lanes::bigint[]) ORDER BY e.enqueued_at, e.lane, e.sequence
"""
_MOVE: Final = """
    UPDATE entry SET lane = v.lane, sequence = v.sequence
      FROM ROWS(:moved AS v(execution bigint, lane bigint, sequence bigint))
     WHERE entry.execution = v.execution
"""
_BIND: Final = """
    UPDATE lane SET policy = :policy, terms = :terms, stamp = :stamp, pools = :pools, arranged = :version
     WHERE id = :id
"""
_ACTIONS: Final = "SELECT DISTINCT action_ref FROM lane"
_ODD: Final = "SELECT 1 FROM lane WHERE action_ref = :ref AND stamp <> :stamp LIMIT 1"


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


class _Standing(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int
    state: State
    enqueued_at: datetime
    config: dict[str, Any]
    executor: IdentityId | None

    @property
    def held(self) -> bool:
        return self.state is not State.QUEUED


class Placed(msgspec.Struct, frozen=True):
    """The lanes that were locked, and which of them each execution goes to."""

    lanes: Lanes
    places: dict[ExecutionId, LaneId]


class Arranger:
    """Finds, makes and arranges lanes as the policies of the catalog want them. `version` is the catalog's."""

    def __init__(self, book: PolicyBook, terms: QueueTerms) -> None:
        self.book = book
        self.terms = terms

    async def place(
        self, tx: Tx, version: int, executions: Sequence[Execution], now: datetime
    ) -> Placed:
        """Lock the lanes that these go to, made or arranged first if need be."""
        bindings = await self.book.of_actions(tx, version, {one.action_ref for one in executions})
        keys: dict[ExecutionId, Key] = {
            one.id: (one.action_ref, bindings[one.action_ref].group_of(one)) for one in executions
        }
        lanes = Lanes(tx, await locking.lock_by_keys(tx, set(keys.values())), self.terms, now)
        for binding in bindings.values():
            groups = {group for ref, group in keys.values() if ref == binding.action_ref}
            await self._prepare(lanes, version, binding, groups)
        ids = {(lane.action_ref, lane.group_key): lane.id for lane in lanes.held.lanes.values()}
        return Placed(lanes, {execution: ids[key] for execution, key in keys.items()})

    async def of_action(
        self, tx: Tx, version: int, action_ref: str, group_key: str | None, now: datetime
    ) -> Lanes:
        """All of its lanes, or the one of a group. The lane without a group is made if need be: it is the switch
        from which a new lane learns whether the action's queue is paused. `NotFound` for what is no group."""
        lanes = Lanes(tx, Locked(), self.terms, now)
        binding = await self.book.of_action(tx, version, action_ref)
        wanted = {WHOLE if group_key is None else group_key}
        ids = await locking.of_action(tx, action_ref, group_key)
        await locking.lock(tx, ids, lanes.held)
        if missing := wanted - {lane.group_key for lane in lanes.held.lanes.values()}:
            _check_group(binding, group_key)
            await self._make(lanes, version, binding, missing)
        return lanes

    async def arrange_all(self, tx: Tx, version: int, now: datetime) -> Lanes:
        """Let every lane follow the policy in effect now; the slots that this frees are still to be given."""
        lanes = Lanes(tx, Locked(), self.terms, now)
        refs = await tx.all(str, _ACTIONS)
        bindings = await self.book.of_actions(tx, version, refs)
        odd = [binding for binding in bindings.values() if await _is_odd(tx, binding)]
        ids = {each for one in odd for each in await locking.of_action(tx, one.action_ref)}
        await locking.lock(tx, ids, lanes.held)
        for binding in odd:
            await self._arrange(lanes, version, binding)
        return lanes

    async def _prepare(
        self, lanes: Lanes, version: int, binding: Binding, groups: set[str]
    ) -> None:
        own = [one for one in lanes.held.lanes.values() if one.action_ref == binding.action_ref]
        missing = groups - {one.group_key for one in own}
        if any(one.stamp != binding.stamp for one in own) or (
            missing and await _is_odd(lanes.tx, binding)
        ):
            await self._arrange(lanes, version, binding)
            missing -= {one.group_key for one in lanes.held.lanes.values()}
        if missing:
            await self._make(lanes, version, binding, missing)

    async def _arrange(self, lanes: Lanes, version: int, binding: Binding) -> None:
        """All lanes of the action, under their locks. A lane that follows a newer catalog sends us back to read it."""
        ids = await locking.of_action(lanes.tx, binding.action_ref)
        await locking.lock(lanes.tx, ids, lanes.held)
        own = [lanes.held.lanes[lane_id] for lane_id in ids]
        if any(one.arranged > version for one in own):
            raise Contention("The policies have changed meanwhile.")
        grouping = grouping_of(binding.policy)
        odd = [lane for lane in own if lane.stamp != binding.stamp]
        for lane in odd:
            if shape_of(lane.group_key) == grouping:
                await self._bind(lanes, version, binding.stamp, lane.id, binding.policy)
        astray = [lane.id for lane in odd if shape_of(lane.group_key) != grouping]
        await self._move(lanes, version, binding, astray)
        for lane_id in astray:
            await self._bind(lanes, version, binding.stamp, lane_id, None)
        if binding.policy is not None and binding.policy.rate is not None:
            await lanes.adopt_starts(_under(lanes, binding.policy.policy, binding.action_ref))

    async def _bind(
        self,
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

    async def _make(
        self, lanes: Lanes, version: int, binding: Binding, groups: Collection[str]
    ) -> None:
        """Nobody may change the catalog until this commit, or the new lane would be born under an old policy."""
        tx = lanes.tx
        if await tx.one(int, _VERSION) != version:
            raise Contention("The catalog has changed meanwhile.")
        paused = await tx.first(bool, _PAUSED, ref=binding.action_ref) or False
        ids = await tx.next_ids(schema.lane, len(groups))
        new = [
            await _new_lane(lanes, version, binding, LaneId(i), group, paused)
            for i, group in zip(ids, sorted(groups), strict=True)
        ]
        await tx.insert(schema.lane, new, skip_existing=True)
        await locking.lock_by_keys(
            tx, {(binding.action_ref, group) for group in groups}, lanes.held
        )

    async def _move(
        self, lanes: Lanes, version: int, binding: Binding, astray: Sequence[LaneId]
    ) -> None:
        """Everyone who stands in a lane that is grouped otherwise goes to the lane of its group, in the old order."""
        standing = await lanes.tx.all(_Standing, _STANDING, lanes=astray) if astray else []
        if not standing:
            return
        groups = {
            one.execution: group_of(binding.policy, one.config, one.executor, binding.secrets)
            for one in standing
        }
        known = {
            e.group_key for e in lanes.held.lanes.values() if e.action_ref == binding.action_ref
        }
        if missing := set(groups.values()) - known:
            await self._make(lanes, version, binding, missing)
        targets = {
            lane.group_key: lane.id
            for lane in lanes.held.lanes.values()
            if lane.action_ref == binding.action_ref
        }
        moved = [_move_one(lanes, one, targets[groups[one.execution]]) for one in standing]
        await lanes.tx.execute(_MOVE, moved=moved)


def first_limit(policy: EffectivePolicy | None, before: int | None) -> int | None:
    """The lane's limit under the policy; one that follows the action starts from where it is, or from the floor."""
    if policy is None or policy.ceiling is None:
        return policy.limit if policy else None
    floor = policy.floor or 1
    return min(max(before or floor, floor), policy.ceiling)


def _check_group(binding: Binding, group_key: str | None) -> None:
    if group_key and not may_be_group(binding.policy, group_key):
        by = ", ".join(grouping_of(binding.policy)) or "nothing"
        raise NotFound(
            f"The queue of {binding.action_ref} has no group {group_key[:200]}; it is grouped by {by}.",
            action_ref=binding.action_ref,
            group=group_key[:200],
        )


def _under(lanes: Lanes, policy: PolicyId, action_ref: str) -> list[LaneId]:
    """The action's lanes that the policy binds."""
    own = [one for one in lanes.held.lanes.values() if one.action_ref == action_ref]
    return [one.id for one in own if one.terms is not None and one.terms.policy == policy]


async def _is_odd(tx: Tx, binding: Binding) -> bool:
    """Whether a lane of the action follows another policy, or older words of it."""
    found = await tx.first(int, _ODD, ref=binding.action_ref, stamp=binding.stamp)
    return found is not None


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


def _move_one(lanes: Lanes, one: _Standing, target: LaneId) -> tuple[ExecutionId, LaneId, int]:
    """A slot goes with whoever holds it; the counts of both lanes and of their pools follow."""
    old, new = lanes.held.lanes[one.lane], lanes.held.lanes[target]
    held, waits = int(one.held), int(not one.held)
    lanes.change(
        msgspec.structs.replace(
            old, active_count=old.active_count - held, queue_length=old.queue_length - waits
        ),
        Went(one.execution, one.sequence, one.band, one.held),
    )
    lanes.count(old, active=-held)
    sequence = new.next_sequence
    lanes.change(
        msgspec.structs.replace(
            new,
            next_sequence=sequence + 1,
            active_count=new.active_count + held,
            queue_length=new.queue_length + waits,
            last_enqueued_at=max(new.last_enqueued_at, one.enqueued_at),
        ),
        Came(one.execution, sequence, one.band, one.held),
    )
    lanes.count(new, active=held)
    return one.execution, target, sequence
