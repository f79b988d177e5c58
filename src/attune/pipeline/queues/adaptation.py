"""Lets limits follow their actions: the duty around `policies/adaptive.py`.

What is known of a lane's action stands in the table of settings, under the lane's number, so any number of
executors may have this duty. One judges at a time, under the lock of that row; what it has judged is behind the
row's number, so another finds nothing new. Nothing is written while too little has ended to judge.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from statistics import median
from typing import Final

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.ids import LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.policies.adaptive import (
    AdaptiveState,
    Adjustment,
    Sample,
    adjusted,
    at_limit,
    enough,
)
from attune.pipeline.policies.model import EffectivePolicy
from attune.pipeline.queues.outcomes import Ends, ends_after
from attune.store.database import Database, Tx
from attune.store.values import Json

ChangeLimit = Callable[[LaneId, int, str], Awaitable[object]]

_S = ExecutionStatus
_FAILED: Final = frozenset({_S.FAILED, _S.TIMEOUT, _S.ABANDONED})
_PREFIX: Final = "adaptive."
_LANES: Final = """
    SELECT l.id, l.max_concurrent, l.next_decision, l.terms,
           (SELECT count(*) FROM entry e WHERE e.state = 'handed' AND e.lane = l.id) AS running
      FROM lane l
     WHERE l.policy IS NOT NULL AND l.terms ->> 'ceiling' IS NOT NULL
"""
_BY_ID: Final = f"{_LANES} AND l.id = :id"
_KNOWN: Final = "SELECT value, updated FROM setting WHERE name = :name"
_LOCKED: Final = f"{_KNOWN} FOR UPDATE"
_SAVE: Final = """
    INSERT INTO setting (name, value, updated) VALUES (:name, :value, :now)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated = excluded.updated
"""
_NAMES: Final = "SELECT name FROM setting WHERE substr(name, 1, :length) = :prefix"
_FORGET: Final = "DELETE FROM setting WHERE name = ANY(:names::text[])"

_log = structlog.get_logger()


class AutoLane(msgspec.Struct, frozen=True, kw_only=True):
    """`running` is how many of its executions workers have."""

    id: LaneId
    max_concurrent: int | None
    next_decision: int
    terms: EffectivePolicy
    running: int

    @property
    def floor(self) -> int:
        return self.terms.floor or 1

    @property
    def ceiling(self) -> int:
        return self.terms.ceiling or self.floor

    @property
    def limit(self) -> int:
        return self.floor if self.max_concurrent is None else self.max_concurrent


class _Known(msgspec.Struct, frozen=True):
    """Ends up to decision `number` are judged; what started before `since` ran under another limit."""

    state: AdaptiveState
    number: int
    since: datetime


class _Row(msgspec.Struct, frozen=True):
    value: _Known
    updated: datetime


class AdaptiveConfig(DutyConfig, frozen=True, kw_only=True):
    interval: float = 5.0


class AdaptiveLimits(Duty[AdaptiveConfig]):
    """`change_limit` writes the lane's limit, with the reason, and gives the slots that this makes."""

    name = "adaptive limits"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        change_limit: ChangeLimit,
        config: AdaptiveConfig | None = None,
    ) -> None:
        super().__init__(config or AdaptiveConfig(), clock)
        self._database = database
        self._change_limit = change_limit

    async def run_once(self) -> None:
        rest = timedelta(seconds=self.config.interval / 2)
        for lane in await self._database.read(lanes_to_judge):
            found = await self._database.run(judge, lane, self.clock.now(), rest)
            if found is not None:
                await self._change_limit(lane, found.limit, found.why)
                _log.info("An adaptive limit was changed.", lane=lane, why=found.why)
        if forgotten := await self._database.read(_forgettable):
            await self._database.run(_forget, forgotten)


async def lanes_to_judge(tx: Tx) -> list[LaneId]:
    """Lanes with a limit that follows the action and of which there is something to say."""
    found: list[LaneId] = []
    for lane in await tx.all(AutoLane, f"{_LANES} ORDER BY l.id"):
        row = await tx.first(_Row, _KNOWN, name=_name(lane.id))
        if row is None or row.value.state.limit != lane.limit:
            found.append(lane.id)
            continue
        seen = sample_of(lane, await ends_after(tx, lane.id, row.value.number), row.value.since)
        bounded = lane.floor <= lane.limit <= lane.ceiling
        if not bounded or seen.ended >= enough(lane.limit):
            found.append(lane.id)
    return found


async def judge(tx: Tx, lane_id: LaneId, now: datetime, rest: timedelta) -> Adjustment | None:
    """The limit that the lane should have now, if it is another one and nobody judged it within `rest`."""
    row = await tx.first(_Row, _LOCKED, name=_name(lane_id))
    lane = await tx.first(AutoLane, _BY_ID, id=lane_id)
    if lane is None or (row is not None and now - row.updated < rest):
        return None
    known = _current(row.value if row else None, lane, now)
    ends = await ends_after(tx, lane.id, known.number)
    found = adjusted(known.state, sample_of(lane, ends, known.since), lane.floor, lane.ceiling)
    changed = found.limit != lane.limit
    judged = changed or found.state != known.state
    after = _Known(
        found.state, ends.last if judged else known.number, now if changed else known.since
    )
    if row is None or after != row.value:
        await tx.execute(_SAVE, name=_name(lane.id), value=Json(after), now=now)
    return found if changed else None


def sample_of(lane: AutoLane, ends: Ends, since: datetime) -> Sample:
    """Cancelled ones say nothing of the action. Slots that wait for a worker are not used, whoever waits for them."""
    runs = [one for one in ends.runs if one.started_at >= since and one.status != _S.CANCELLED]
    completed = [one.seconds for one in runs if one.status is _S.COMPLETED]
    return Sample(
        ended=len(runs),
        failed=sum(one.status in _FAILED for one in runs),
        p50_seconds=median(completed) if completed else None,
        saturated=ends.waited and 2 * lane.running >= lane.limit,
    )


def _current(known: _Known | None, lane: AutoLane, now: datetime) -> _Known:
    """What is known, for the limit that the lane has now: with another one, what ended before says nothing."""
    if known is not None and known.state.limit == lane.limit:
        return known
    state = at_limit(known.state, lane.limit) if known else AdaptiveState(limit=lane.limit)
    return _Known(state, lane.next_decision - 1, now)


async def _forgettable(tx: Tx) -> list[str]:
    """What is known of lanes whose limit no longer follows anything."""
    names = await tx.all(str, _NAMES, length=len(_PREFIX), prefix=_PREFIX)
    if not names:
        return []
    wanted = {_name(lane.id) for lane in await tx.all(AutoLane, _LANES)}
    return sorted(set(names) - wanted)


async def _forget(tx: Tx, names: list[str]) -> None:
    await tx.execute(_FORGET, names=names)


def _name(lane: LaneId) -> str:
    return f"{_PREFIX}{lane}"
