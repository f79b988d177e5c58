"""Who may go, and why the others wait. Pure."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from attune.pipeline.executions.model import Execution
from attune.pipeline.queues.model import Entry, Lane, Reason, State


def room(lane: Lane) -> int | None:
    """How many more slots the lane can give; null where it has no limit. A limit of 0 holds everything."""
    if lane.paused:
        return 0
    if lane.max_concurrent is None:
        return None
    return max(lane.max_concurrent - lane.active_count, 0)


def waiting_reason(lane: Lane) -> Reason:
    return Reason.PAUSE if lane.paused else Reason.CONCURRENCY


def joined(lane: Lane, executions: Sequence[Execution], now: datetime) -> tuple[Lane, list[Entry]]:
    """The lane after these have joined it, in this order, and their entries.

    Those for whom there is a slot and nobody ahead have it at once. The time of joining never falls within a lane,
    whatever the clocks of several processes say, so age orders entries as their sequence does.
    """
    at = max(now, lane.last_enqueued_at)
    numbered = list(enumerate(executions, start=lane.next_sequence))
    admitted = _admitted(lane, numbered)
    entries = [_entry(lane, e, number, at, number in admitted) for number, e in numbered]
    return (
        msgspec.structs.replace(
            lane,
            next_sequence=lane.next_sequence + len(entries),
            queue_length=lane.queue_length + len(entries) - len(admitted),
            active_count=lane.active_count + len(admitted),
            total_enqueued=lane.total_enqueued + len(entries),
            last_enqueued_at=at,
        ),
        entries,
    )


def promoted(lane: Lane, count: int) -> Lane:
    """The lane after so many of those that waited got a slot."""
    return msgspec.structs.replace(
        lane, queue_length=lane.queue_length - count, active_count=lane.active_count + count
    )


def left(lane: Lane, states: Sequence[State]) -> Lane:
    """The lane after entries in these states ended: a slot that one held is free, whoever takes it next."""
    waiting = sum(state is State.QUEUED for state in states)
    return msgspec.structs.replace(
        lane,
        queue_length=lane.queue_length - waiting,
        active_count=lane.active_count - (len(states) - waiting),
        total_completed=lane.total_completed + len(states),
    )


def _admitted(lane: Lane, numbered: list[tuple[int, Execution]]) -> set[int]:
    if lane.queue_length > 0:
        return set()
    free = room(lane)
    if free is None or free >= len(numbered):
        return {number for number, _ in numbered}
    by_band = sorted(numbered, key=lambda pair: (pair[1].priority, pair[0]))
    return {number for number, _ in by_band[:free]}


def _entry(lane: Lane, one: Execution, sequence: int, at: datetime, admitted: bool) -> Entry:
    return Entry(
        execution=one.id,
        lane=lane.id,
        band=one.priority,
        sequence=sequence,
        state=State.READY if admitted else State.QUEUED,
        reason=Reason.WORKER if admitted else waiting_reason(lane),
        enqueued_at=at,
        attempt=one.attempt,
        definition=one.definition,
        worker_selector=one.worker_selector,
    )
