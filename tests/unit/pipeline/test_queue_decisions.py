"""Joining and leaving a lane: the counters always say what the entries say, and nobody passes his elders."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, PolicyId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.policies.gates import first_blocker, room
from attune.pipeline.policies.model import EffectivePolicy, GateName
from attune.pipeline.queues import decide
from attune.pipeline.queues.decide import gates, left, promoted, turns
from attune.pipeline.queues.model import Entry, Lane, State, Waiter

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lane(**fields: Any) -> Lane:
    limit = fields.get("max_concurrent")
    terms = None
    if limit is not None:
        terms = EffectivePolicy(
            policy=PolicyId(1), policy_ref="core.limit", scope="action", limit=limit
        )
    return msgspec.convert(
        {"id": 1, "action_ref": "core.noop", "last_enqueued_at": NOW, "terms": terms, **fields},
        Lane,
    )


def joined(lane: Lane, some: list[Execution], now: datetime) -> tuple[Lane, list[Entry]]:
    found = gates(lane, {}, {}, now)
    blocker = first_blocker(found)
    reason = blocker.name if blocker else GateName.CONCURRENCY
    return decide.joined(lane, some, room(found), reason, now)


def free(lane: Lane) -> int | None:
    return room(gates(lane, {}, {}, NOW))


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
    assert [(e.state, e.reason) for e in entries] == [(State.READY, GateName.WORKER)] * 2
    assert (after.active_count, after.queue_length, after.next_sequence) == (2, 0, 3)


def test_f12_a_limit_of_zero_holds_and_says_so() -> None:
    after, [entry] = joined(lane(max_concurrent=0), [execution(1)], NOW)
    assert (entry.state, entry.reason) == (State.QUEUED, GateName.CONCURRENCY)
    assert (after.active_count, after.queue_length) == (0, 1)


def test_a_paused_lane_admits_nobody_and_gives_the_pause_as_the_reason() -> None:
    _, [entry] = joined(lane(paused=True), [execution(1)], NOW)
    assert (entry.state, entry.reason) == (State.QUEUED, GateName.PAUSE)


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
        more = free(now)
        waiting = [e for e in sorted(entries) if entries[e] is State.QUEUED]
        given_now = waiting if more is None else waiting[:more]
        entries |= dict.fromkeys(given_now, State.READY)
        now = promoted(now, len(given_now))
        assert now.active_count == sum(state is State.READY for state in entries.values())
        assert now.queue_length == sum(state is State.QUEUED for state in entries.values())
        assert limit is None or now.active_count <= limit
        assert now.total_enqueued - now.total_completed == len(entries)


def test_a_lane_that_is_over_a_lowered_limit_has_no_room() -> None:
    assert free(lane(max_concurrent=2, active_count=5)) == 0
    assert free(lane(active_count=5)) is None
    assert LaneId(1) == lane().id


def waiter(sequence: int, priority: Priority = Priority.NORMAL) -> Waiter:
    return Waiter(ExecutionId(sequence), priority, sequence, NOW + timedelta(seconds=sequence))


def test_a_higher_band_goes_first_and_tells_whom_it_passed_over() -> None:
    waiting = [waiter(1), waiter(2, Priority.LOW), waiter(3, Priority.CRITICAL)]
    found = turns(waiting, 2, None)
    assert [(t.waiter.sequence, t.passed_over, t.rule) for t in found] == [
        (3, 1, "band"),
        (1, None, None),
    ]


def test_waiting_is_worth_bands_where_ageing_is_on() -> None:
    waiting = [waiter(1, Priority.BACKGROUND), waiter(30, Priority.CRITICAL)]
    [first] = turns(waiting, 1, 5.0)
    assert (first.waiter.sequence, first.rule) == (1, "ageing")
    [first] = turns(waiting, 1, 50.0)
    assert (first.waiter.sequence, first.passed_over, first.rule) == (30, 1, "band")


@given(
    bands=st.lists(st.sampled_from(Priority), min_size=1, max_size=20),
    count=st.integers(1, 20),
    ageing=st.one_of(st.none(), st.floats(0.1, 100)),
)
def test_turns_are_the_first_of_the_whole_order(
    bands: list[Priority], count: int, ageing: float | None
) -> None:
    waiting = [waiter(number, band) for number, band in enumerate(bands, start=1)]
    found = [turn.waiter for turn in turns(waiting, count, ageing)]
    assert found == sorted(waiting, key=lambda one: decide.due(one, ageing))[:count]


@given(bands=st.lists(st.sampled_from(Priority), min_size=2, max_size=12))
def test_with_ageing_background_goes_before_whatever_came_four_steps_later(
    bands: list[Priority],
) -> None:
    """The stated bound: nothing that came more than four times the ageing later goes before it."""
    ageing = 3.0
    waiting = [waiter(number, band) for number, band in enumerate(bands, start=1)]
    order = [turn.waiter for turn in turns(waiting, len(waiting), ageing)]
    for position, one in enumerate(order):
        ahead = order[:position]
        assert all(e.enqueued_at <= one.enqueued_at + timedelta(seconds=4 * ageing) for e in ahead)
