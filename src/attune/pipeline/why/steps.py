"""Why an execution waits, read on one snapshot and without a lock."""

from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.definitions import Definitions
from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.completion.model import PastAttempt
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.history import wait_story
from attune.pipeline.queues.looking import LaneView, lane_view
from attune.pipeline.queues.model import Entry, State, Waiter
from attune.pipeline.queues.outcomes import recent_durations
from attune.pipeline.queues.story import Waited, WaitStory
from attune.pipeline.scheduling.model import Terms
from attune.pipeline.why.decide import delay_obstacle, next_step
from attune.pipeline.why.forecast import forecast
from attune.pipeline.why.hand_off_stage import demand_of, hand_off_obstacles, hand_off_stage
from attune.pipeline.why.lane_stage import lane_stage
from attune.pipeline.why.model import History, Stage, StatusAt, Why
from attune.store.database import Tx

_S = ExecutionStatus

_SUBJECT: Final = """
    SELECT x.id, x.action_ref, x.status, x.attempt, x.created, x.started_at, x.updated,
           w.name AS worker
      FROM execution x LEFT JOIN worker w ON w.id = x.worker
     WHERE x.id = :id
"""
# The names in this statement are those of our own struct.
_ENTRY: Final = f"SELECT {', '.join(Entry.__struct_fields__)} FROM entry WHERE execution = :id"  # noqa: S608


_RESTING: Final = "SELECT due_at, attempt FROM delay WHERE execution = :id"
_ATTEMPTS: Final = f"""
    SELECT {", ".join(PastAttempt.__struct_fields__)} FROM execution_attempt
     WHERE execution = :id ORDER BY attempt
"""  # noqa: S608


class _Resting(msgspec.Struct, frozen=True):
    due_at: datetime
    attempt: int


class _Subject(msgspec.Struct, frozen=True, kw_only=True):
    id: ExecutionId
    action_ref: str
    status: ExecutionStatus
    attempt: int
    created: datetime
    started_at: datetime | None
    updated: datetime
    worker: str | None

    @property
    def is_over(self) -> bool:
        return self.status in TERMINAL


class Explainer:
    """Steps that need what a process holds: its terms, and the definitions that it has met."""

    def __init__(self, terms: Terms, definitions: Definitions) -> None:
        self._terms = terms
        self._definitions = definitions

    async def why(self, tx: Tx, execution_id: ExecutionId, now: datetime) -> Why:
        """`NotFound` for an execution that there is not."""
        subject = await _subject(tx, execution_id)
        entry = await tx.first(Entry, _ENTRY, id=execution_id)
        if entry is None or entry.state is State.HANDED:
            history = await _history(tx, subject, None, None, now)
            if (resting := await _resting(tx, execution_id)) is not None:
                return _why_resting(resting, history)
            return Why(waiting=False, next=_next_of_running(subject), history=history)
        view = await lane_view(tx, entry.lane, now)
        stage = await self._stage(tx, view, entry, now)
        durations = await recent_durations(tx, entry.lane)
        return Why(
            waiting=True,
            position=stage.position,
            blockers=tuple(each.gate for each in stage.obstacles),
            next=next_step(stage.obstacles, stage.ahead),
            estimate=forecast(stage.outlook, durations),
            history=await _history(tx, subject, entry, view, now),
        )

    async def history(self, tx: Tx, execution_id: ExecutionId, now: datetime) -> History:
        """How it came to where it is, as far as rows tell."""
        subject = await _subject(tx, execution_id)
        entry = await tx.first(Entry, _ENTRY, id=execution_id)
        view = await lane_view(tx, entry.lane, now) if entry else None
        waits = await _history(tx, subject, entry, view, now)
        attempts = await tx.all(PastAttempt, _ATTEMPTS, id=execution_id)
        return History(
            attempt=subject.attempt,
            statuses=_statuses(subject),
            waits=waits,
            attempts=tuple(attempts),
        )

    async def _stage(self, tx: Tx, view: LaneView, entry: Entry, now: datetime) -> Stage:
        """One that waits for a slot is also told what would hold it up once it had one."""
        one = Waiter(entry.execution, entry.band, entry.sequence, entry.enqueued_at)
        since = now - self._terms.stale
        demand = await demand_of(tx, self._definitions, entry)
        if entry.state is State.READY:
            ageing = view.lane.ageing
            return await hand_off_stage(tx, entry.lane, one, demand, ageing, since, now)
        stage = await lane_stage(tx, view, one, now)
        later = await hand_off_obstacles(tx, demand, since, now)
        outlook = stage.outlook
        if any(not each.gate.limit for each in later):
            outlook = msgspec.structs.replace(outlook, opens_in=None)
        obstacles = (*stage.obstacles, *later)
        return msgspec.structs.replace(stage, obstacles=obstacles, outlook=outlook)


async def _subject(tx: Tx, execution_id: ExecutionId) -> _Subject:
    found = await tx.first(_Subject, _SUBJECT, id=execution_id)
    if found is None:
        raise NotFound(f"There is no execution {execution_id}.", id=execution_id)
    return found


async def _resting(tx: Tx, execution_id: ExecutionId) -> _Resting | None:
    """For one between two attempts."""
    return await tx.first(_Resting, _RESTING, id=execution_id)


def _why_resting(resting: _Resting, history: tuple[Waited, ...]) -> Why:
    obstacle = delay_obstacle(resting.due_at, resting.attempt)
    return Why(waiting=True, blockers=(obstacle.gate,), next=obstacle.remedy, history=history)


def _next_of_running(subject: _Subject) -> str | None:
    """Of one that a worker has."""
    worker = f"the worker {subject.worker}" if subject.worker else "its worker"
    match subject.status:
        case ExecutionStatus.SCHEDULED:
            return f"{worker}, which has it, must begin it"
        case ExecutionStatus.RUNNING:
            return f"{worker} must bring it to its end"
        case ExecutionStatus.CANCELING:
            return f"{worker} must stop it"
        case _:
            return None


async def _history(
    tx: Tx, subject: _Subject, entry: Entry | None, view: LaneView | None, now: datetime
) -> tuple[Waited, ...]:
    until = subject.updated if subject.is_over else now
    story = await wait_story(tx, subject.id, subject.action_ref, subject.created, until)
    if entry is not None and entry.state is not State.HANDED:
        _keep_open(story, entry, view)
    elif entry is not None or await _resting(tx, subject.id) is None:
        _close(story, subject)
    return tuple(story.waits())


def _close(story: WaitStory, subject: _Subject) -> None:
    """At the start; where there was none, at the hand-off or at the end."""
    story.end(subject.started_at or subject.updated)


def _keep_open(story: WaitStory, entry: Entry, view: LaneView | None) -> None:
    if entry.state is State.READY:
        story.begin_unless_told(GateName.WORKER, entry.enqueued_at)
        return
    reason = (view.lane.reason if view else None) or entry.reason or GateName.TURN
    story.begin_unless_told(reason, entry.enqueued_at)


def _statuses(subject: _Subject) -> tuple[StatusAt, ...]:
    found = [StatusAt(_S.REQUESTED, subject.created)]
    if subject.status is _S.SCHEDULED:
        found.append(StatusAt(_S.SCHEDULED, subject.updated))
    if subject.started_at is not None:
        found.append(StatusAt(_S.RUNNING, subject.started_at))
    if subject.is_over or subject.status is _S.CANCELING:
        found.append(StatusAt(subject.status, subject.updated))
    return tuple(found)
