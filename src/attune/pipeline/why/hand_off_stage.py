"""Between a slot and a worker: the cap of the whole system, and the workers that can run it.

Which workers may get it is asked of the functions that place executions.
"""

from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.definitions import Definitions
from attune.kernel.ids import LaneId
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.ahead import ready_ahead
from attune.pipeline.queues.holders import elapsed, held_by_workers, shown
from attune.pipeline.queues.model import Entry, Waiter
from attune.pipeline.scheduling import compatibility
from attune.pipeline.scheduling.asides import asides_until
from attune.pipeline.scheduling.cap import Cap
from attune.pipeline.scheduling.decide import NONE_ASIDE, candidates
from attune.pipeline.scheduling.model import Demand
from attune.pipeline.why.decide import (
    able_text,
    aside_text,
    away_text,
    cap_obstacle,
    full_obstacle,
    nobody_obstacle,
    nobody_text,
    turn_obstacle,
)
from attune.pipeline.why.model import Limit, Obstacle, Outlook, Stage
from attune.pipeline.workers.decide import takes_work
from attune.pipeline.workers.steps import loads, present
from attune.store.database import Tx

_CAP: Final = """
    SELECT CAST(s.value AS bigint) AS "limit",
           (SELECT count(*) FROM entry WHERE state = 'handed') AS active
      FROM setting s WHERE s.name = 'max_concurrent_executions'
"""


class _Way(msgspec.Struct, frozen=True):
    """One of the two ways in which a hand-off can be held up: it may be open."""

    obstacle: Obstacle
    limit: Limit | None


async def demand_of(tx: Tx, definitions: Definitions, entry: Entry) -> Demand:
    definition = (await definitions.get(tx, [entry.definition]))[entry.definition]
    return compatibility.demand_of(definition, entry.needs)


async def hand_off_obstacles(
    tx: Tx, demand: Demand, since: datetime, now: datetime
) -> tuple[Obstacle, ...]:
    """What would hold it up if it had a slot now. `since` is the last beat of a worker that counts as there."""
    return _closed(await _ways(tx, demand, since, 0, now))


async def hand_off_stage(
    tx: Tx,
    lane: LaneId,
    one: Waiter,
    demand: Demand,
    ageing: float | None,
    since: datetime,
    now: datetime,
) -> Stage:
    """For one that has a slot. All lanes stand in one line here, its position is that in its own."""
    found = await ready_ahead(tx, lane, one, ageing)
    ahead = None if found is None else found.everywhere
    ways = await _ways(tx, demand, since, ahead, now)
    obstacles = _closed(ways)
    if ahead != 0 or not obstacles:
        turn = turn_obstacle(
            ahead, "with a slot must get a worker", "an executor gives it a worker"
        )
        obstacles = (*obstacles, turn)
    limits = tuple(way.limit for way in ways if way.limit is not None)
    unmanned = any(way.limit is None for way in ways)
    return Stage(
        obstacles=obstacles,
        ahead=ahead,
        position=None if found is None else found.here + 1,
        outlook=Outlook(limits=limits, opens_in=None if unmanned else 0.0),
    )


def _closed(ways: list[_Way]) -> tuple[Obstacle, ...]:
    return tuple(way.obstacle for way in ways if way.obstacle.gate.is_closed)


async def _ways(
    tx: Tx, demand: Demand, since: datetime, ahead: int | None, now: datetime
) -> list[_Way]:
    cap = await tx.first(Cap, _CAP)
    found = [] if cap is None else [await _cap_way(tx, cap, ahead, now)]
    return [*found, await _worker_way(tx, demand, since, ahead, now)]


async def _cap_way(tx: Tx, cap: Cap, ahead: int | None, now: datetime) -> _Way:
    holders = await held_by_workers(tx, None)
    gate = Gate(
        name=GateName.SYSTEM_CAP,
        free=cap.limit - cap.active,
        text=f"{cap.active} of at most {cap.limit} executions of the whole system are with workers",
        limit=cap.limit,
        holders=shown(holders),
    )
    return _Way(cap_obstacle(gate), Limit(cap.limit, ahead, elapsed(holders, now)))


async def _worker_way(
    tx: Tx, demand: Demand, since: datetime, ahead: int | None, now: datetime
) -> _Way:
    there = await present(tx)
    aside = await asides_until(tx, now)
    chosen = candidates(demand, there, aside.keys())
    if not chosen:
        text = nobody_text(demand, there)
        return _Way(nobody_obstacle(Gate(name=GateName.WORKER, free=0, text=text), demand), None)
    able = candidates(demand, there, NONE_ASIDE)
    back = [aside[one] for each in able if (one := (each.id, demand.action_ref)) in aside]
    load = await loads(tx, [worker.id for worker in chosen])
    away = [worker for worker in chosen if not takes_work(worker, now - since, now)]
    free = sum(max(e.capacity - load.get(e.id, 0), 0) for e in chosen if e not in away)
    holders = await held_by_workers(tx, [worker.id for worker in chosen])
    capacity = sum(worker.capacity for worker in chosen)
    gate = Gate(
        name=GateName.WORKER,
        free=free,
        text=able_text(len(chosen), sum(load.values()), capacity)
        + away_text(len(away))
        + aside_text(demand, sorted(back), out_of=len(able)),
        limit=capacity,
        until=min(back) if len(chosen) < len(able) else None,
        holders=shown(holders),
    )
    return _Way(full_obstacle(gate, demand), Limit(capacity, ahead, elapsed(holders, now)))
