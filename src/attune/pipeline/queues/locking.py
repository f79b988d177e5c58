"""Lanes and pools, locked in one order: lanes that share nothing, then pools, then the lanes that share them.

Within each, by id, and the pool of a whole policy before its others. Workers, entries and executions come after.
Whoever holds a pool may lock further lanes of it, because nobody else gets to them without the pool.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import Contention, Outdated
from attune.kernel.ids import ExecutionId, LaneId, PolicyId, PoolId
from attune.pipeline.queues.model import Lane, Pool
from attune.store.database import Answer, Tx

Key = tuple[str, str]

_REMEMBERED: Final = 100_000
_LANE: Final = """
    SELECT l.id, l.action_ref, l.group_key, l.paused, l.next_sequence, l.queue_length, l.active_count,
           l.total_enqueued, l.total_completed, l.last_enqueued_at, l.terms, l.stamp, l.arranged,
           l.max_concurrent, l.pools, l.reason, l.retry_at, l.next_decision,
           (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing,
           (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_queue_length') AS longest
      FROM lane l
"""
_PLAIN: Final = f"""{_LANE}
     WHERE l.id = ANY(:ids::bigint[]) AND l.pools IS NULL ORDER BY l.id FOR UPDATE OF l
"""
# Sorted, and not read in the order of the ids: a plan of when there were few lanes would pass all of them for one.
_PLAIN_BY_KEYS: Final = f"""{_LANE}
     JOIN ROWS(:keys AS k(action_ref text, group_key text))
       ON l.action_ref = k.action_ref AND l.group_key = k.group_key
     WHERE l.pools IS NULL ORDER BY l.id + 0 FOR UPDATE OF l
"""
_IDS_BY_KEYS: Final = """
    SELECT l.id FROM lane l
      JOIN ROWS(:keys AS k(action_ref text, group_key text))
        ON l.action_ref = k.action_ref AND l.group_key = k.group_key
     ORDER BY l.id
"""
_SHARING: Final = f"""{_LANE}
     WHERE l.id = ANY(:ids::bigint[]) AND l.pools IS NOT NULL ORDER BY l.id FOR UPDATE OF l
"""
_ANY: Final = f"{_LANE} WHERE l.id = ANY(:ids::bigint[]) ORDER BY l.id FOR UPDATE OF l"
_POOL: Final = "SELECT id, policy, key, active_count, total_accepted, next_decision FROM pool"
_IN_ORDER: Final = "ORDER BY CASE key WHEN '' THEN 0 ELSE 1 END, id FOR UPDATE"
_POOLS: Final = f"{_POOL} WHERE id = ANY(:ids::bigint[]) {_IN_ORDER}"
_POOLS_OF: Final = f"""{_POOL}
     WHERE id = ANY(ARRAY(
           SELECT CAST(e.value AS bigint) FROM lane l CROSS JOIN ELEMENTS(l.pools) AS e
            WHERE l.id = ANY(:ids::bigint[]) AND l.pools IS NOT NULL)) {_IN_ORDER}
"""  # noqa: S608 - all of it is our own text
_WITH_WAITING: Final = "SELECT id FROM lane WHERE queue_length > 0 ORDER BY id"
_LANES_OF: Final = """
    SELECT lane FROM entry WHERE execution = ANY(:ids::bigint[])
     UNION SELECT lane FROM delay WHERE execution = ANY(:ids::bigint[])
"""
_OF_ACTION: Final = "SELECT id FROM lane WHERE action_ref = :ref ORDER BY id"
_OF_GROUP: Final = "SELECT id FROM lane WHERE action_ref = :ref AND group_key = :group_key"
_WAITING_UNDER: Final = """
    SELECT id, pools FROM lane WHERE policy = :policy AND pools IS NOT NULL AND queue_length > 0
"""
_OPENING: Final = """
    SELECT id FROM lane
     WHERE queue_length > 0
       AND (retry_at <= :now OR (retry_at IS NULL AND reason = 'rate_limit')) ORDER BY id
"""
_NEXT_OPENING: Final = "SELECT min(retry_at) FROM lane WHERE retry_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Locked:
    """What a transaction holds."""

    lanes: dict[LaneId, Lane] = field(default_factory=dict)
    pools: dict[PoolId, Pool] = field(default_factory=dict)

    def add(self, lanes: Iterable[Lane], pools: Iterable[Pool] = ()) -> None:
        self.lanes.update((lane.id, lane) for lane in lanes)
        self.pools.update((pool.id, pool) for pool in pools)


class Loners:
    """Lanes that shared nothing when a process held them last: it looks for no pools of theirs."""

    def __init__(self) -> None:
        self._known: set[LaneId] = set()

    def are(self, ids: Iterable[LaneId]) -> bool:
        return self._known.issuperset(ids)

    def learn(self, lanes: Iterable[Lane]) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known.update(lane.id for lane in lanes if lane.pools is None)

    def check(self, ids: Iterable[LaneId], held: Locked) -> None:
        """Those that were taken for such and share something now were not locked: the step begins anew."""
        if missing := set(ids) - held.lanes.keys():
            self._known -= missing
            raise Outdated("A lane shares something that it did not share before.")


class _Waiting(msgspec.Struct, frozen=True):
    id: LaneId
    pools: tuple[PoolId, ...]


@dataclass(frozen=True, slots=True)
class Locking:
    """Locks that were asked for, in their order. They are held once what was put off is settled."""

    held: Locked
    _lanes: Sequence[Answer[Lane]] = ()
    _pools: Answer[Pool] = field(default_factory=lambda: Answer([]))

    def taken(self) -> Locked:
        """To be asked when they are held. What a transaction held before is as it has changed it since."""
        lanes = [lane for answer in self._lanes for lane in answer.rows]
        self.held.add(lanes, [one for one in self._pools.rows if one.id not in self.held.pools])
        _check_pools(lanes, self.held)
        return self.held


async def ask(
    tx: Tx, ids: Collection[LaneId], held: Locked | None = None, *, alone: bool = False
) -> Locking:
    """Lock these lanes and the pools that they share, along with the statements that follow. Those that there are not are
    left out, and so are those that share something if they are taken to be `alone`."""
    held = held or Locked()
    wanted = sorted(set(ids) - held.lanes.keys())
    plain = await tx.answer_later(Lane, _PLAIN, ids=wanted)
    if len(plain.rows) == len(wanted):  # where answers come at once
        held.add(plain.rows)
        return Locking(held)
    if alone:
        return Locking(held, [plain])
    pools = await tx.answer_later(Pool, _POOLS_OF, ids=wanted)
    sharing = await tx.answer_later(Lane, _SHARING, ids=wanted)
    return Locking(held, [plain, sharing], pools)


async def lock(tx: Tx, ids: Collection[LaneId], held: Locked | None = None) -> Locked:
    """Lock them now; what is held already stays as it is."""
    held = held or Locked()
    if held.lanes.keys() >= set(ids):
        return held
    asked = await ask(tx, ids, held)
    await tx.settle()
    if missing := sorted(set(ids) - asked.taken().lanes.keys()):
        await _lock_changed(tx, missing, held)
    return held


async def _lock_changed(tx: Tx, ids: Sequence[LaneId], held: Locked) -> None:
    """Lanes that shared a pool when the others were locked, and no longer did when it was their turn."""
    lanes = await tx.all(Lane, _ANY, ids=ids)
    _check_pools(lanes, held)
    held.add(lanes)


def _check_pools(lanes: Iterable[Lane], held: Locked) -> None:
    if not held.pools.keys() >= {pool for lane in lanes for pool in lane.pools or ()}:
        raise Contention("A lane was put under another policy meanwhile.")


async def ask_by_keys(tx: Tx, keys: Collection[Key]) -> Answer[Lane]:
    """Lock those that share nothing, of lanes named by action and group, along with the statements that follow."""
    return await tx.answer_later(Lane, _PLAIN_BY_KEYS, keys=sorted(keys))


async def lock_by_keys(
    tx: Tx, keys: Collection[Key], held: Locked, asked: Answer[Lane] | None = None
) -> None:
    """Lock them all now, those that were asked for first; those that there are not are left out."""
    asked = asked or await ask_by_keys(tx, keys)
    await tx.settle()
    held.add(asked.rows)
    if missing := sorted(set(keys) - {lane.key for lane in held.lanes.values()}):
        ids = await tx.all(LaneId, _IDS_BY_KEYS, keys=missing)
        await lock(tx, ids, held)


async def lock_pools(tx: Tx, ids: Collection[PoolId], held: Locked) -> None:
    wanted = sorted(set(ids) - held.pools.keys())
    if wanted:
        held.add((), await tx.all(Pool, _POOLS, ids=wanted))


async def with_waiting(tx: Tx) -> list[LaneId]:
    return await tx.all(LaneId, _WITH_WAITING)


async def of_executions(tx: Tx, ids: Collection[ExecutionId]) -> list[LaneId]:
    """Where these stand, or left for a delay."""
    return await tx.all(LaneId, _LANES_OF, ids=sorted(ids))


async def of_action(tx: Tx, ref: str, group_key: str | None = None) -> list[LaneId]:
    """All of its lanes, or the one of a group."""
    if group_key is None:
        return await tx.all(LaneId, _OF_ACTION, ref=ref)
    return await tx.all(LaneId, _OF_GROUP, ref=ref, group_key=group_key)


async def waiting_under(tx: Tx, policy: PolicyId, pools: Collection[PoolId]) -> list[LaneId]:
    """Lanes under the policy that share one of these pools and in which somebody waits.

    Another pool of theirs may be locked after these: a lane with several is in the pool of the whole policy as well.
    """
    found = await tx.all(_Waiting, _WAITING_UNDER, policy=policy)
    return sorted(one.id for one in found if not set(pools).isdisjoint(one.pools))


async def next_opening(tx: Tx) -> datetime | None:
    return await tx.first(datetime, _NEXT_OPENING)


async def with_open_gates(tx: Tx, now: datetime) -> list[LaneId]:
    """Lanes whose gate of time has opened, or whose rate waits for a start to be told."""
    return await tx.all(LaneId, _OPENING, now=now)
