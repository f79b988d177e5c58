"""Joining and leaving a lane: the counters always say what the entries say, and nobody passes his elders."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.queues.decide import joined, left, promoted, room
from attune.pipeline.queues.model import Lane, Reason, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lane(**fields: object) -> Lane:
    return msgspec.convert(
        {"id": 1, "action_ref": "core.noop", "last_enqueued_at": NOW, **fields}, Lane
    )


def execution(number: int, priority: Priority = Priority.NORMAL) -> Execution:
    return Execution(
        id=ExecutionId(number),
        action=None,
        action_ref="core.noop",
        definition=ActionDefinitionId(1),
        status=ExecutionStatus.REQUESTED,
        priority=priority,
        created=NOW,
        updated=NOW,
    )


def test_without_a_limit_everybody_is_admitted_and_waits_for_a_worker_only() -> None:
    after, entries = joined(lane(), [execution(1), execution(2)], NOW)
    assert [(e.state, e.reason) for e in entries] == [(State.READY, Reason.WORKER)] * 2
    assert (after.active_count, after.queue_length, after.next_sequence) == (2, 0, 3)


def test_f12_a_limit_of_zero_holds_and_says_so() -> None:
    after, [entry] = joined(lane(max_concurrent=0), [execution(1)], NOW)
    assert (entry.state, entry.reason) == (State.QUEUED, Reason.CONCURRENCY)
    assert (after.active_count, after.queue_length) == (0, 1)


def test_a_paused_lane_admits_nobody_and_gives_the_pause_as_the_reason() -> None:
    _, [entry] = joined(lane(paused=True), [execution(1)], NOW)
    assert (entry.state, entry.reason) == (State.QUEUED, Reason.PAUSE)


def test_f2_whoever_joins_does_not_pass_those_who_wait_even_where_a_slot_is_free() -> None:
    waiting = lane(max_concurrent=3, active_count=1, queue_length=2, next_sequence=9)
    _, [entry] = joined(waiting, [execution(1, Priority.CRITICAL)], NOW)
    assert entry.state is State.QUEUED
    assert entry.sequence == 9


def test_of_those_who_join_together_the_higher_band_gets_the_slot() -> None:
    some = [execution(1, Priority.LOW), execution(2, Priority.HIGH), execution(3, Priority.HIGH)]
    _, entries = joined(lane(max_concurrent=1), some, NOW)
    assert [entry.state for entry in entries] == [State.QUEUED, State.READY, State.QUEUED]


def test_f16_the_time_of_joining_never_falls_whatever_the_clocks_say() -> None:
    after, [entry] = joined(lane(), [execution(1)], NOW - timedelta(hours=1))
    assert entry.enqueued_at == NOW
    later, [second] = joined(after, [execution(2)], NOW + timedelta(seconds=1))
    assert second.enqueued_at == later.last_enqueued_at == NOW + timedelta(seconds=1)


PRIORITIES = st.lists(st.sampled_from(Priority), max_size=8)
STEPS = st.lists(st.one_of(PRIORITIES, st.integers(0, 5)), max_size=30)


@given(limit=st.one_of(st.none(), st.integers(0, 4)), steps=STEPS)
def test_whatever_joins_and_leaves_the_counters_are_the_entries_and_the_limit_holds(
    limit: int | None, steps: list[list[Priority] | int]
) -> None:
    now = lane(max_concurrent=limit)
    entries: dict[ExecutionId, State] = {}
    number = 0
    for step in steps:
        if isinstance(step, list):
            new = [execution(number + n, priority) for n, priority in enumerate(step)]
            number += len(new)
            now, made = joined(now, new, NOW)
            entries |= {entry.execution: entry.state for entry in made}
        else:
            gone = sorted(entries)[:step]
            now = left(now, [entries.pop(each) for each in gone])
        free = room(now)
        waiting = [e for e in sorted(entries) if entries[e] is State.QUEUED]
        given_now = waiting if free is None else waiting[:free]
        entries |= dict.fromkeys(given_now, State.READY)
        now = promoted(now, len(given_now))
        assert now.active_count == sum(state is State.READY for state in entries.values())
        assert now.queue_length == sum(state is State.QUEUED for state in entries.values())
        assert limit is None or now.active_count <= limit
        assert now.total_enqueued - now.total_completed == len(entries)


def test_a_lane_that_is_over_a_lowered_limit_has_no_room() -> None:
    assert room(lane(max_concurrent=2, active_count=5)) == 0
    assert room(lane(active_count=5)) is None
    assert LaneId(1) == lane().id
