"""Anything that may happen to a queue, in any order, against a plain model of it."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import ExecutionQueue, QueueItem, QueueStatus
from tests.contract.queues.worlds import RedisWorld, World

LANES = 2
WHERE = st.sampled_from([0, 1, None])
PRIORITIES = st.sampled_from([*Priority, *[Priority.NORMAL] * 5])
LIMITS = st.sampled_from([None, 0, 1, 2, 3, 4])
LATER = st.sampled_from([0, 0, 0, 1, 1_000])
ANYONE = st.integers(min_value=0, max_value=30)
QUEUED, READY, HANDED = "queued", "ready", "handed"


class Model:
    """Lists that are sorted when somebody asks, and nothing else."""

    def __init__(self) -> None:
        self.items: dict[ExecutionId, QueueItem] = {}
        self.states: dict[ExecutionId, str] = {}

    def enter(self, item: QueueItem) -> None:
        if item.execution not in self.states:
            self.items[item.execution] = item
            self.states[item.execution] = READY if item.lane is None else QUEUED

    def waiting(self, lane: LaneId | None) -> list[QueueItem]:
        if lane is not None:
            found = [e for e in self._those(QUEUED) if e.lane == lane]
            return sorted(found, key=lambda e: (e.priority, e.sequence))
        key = lambda e: (e.priority, e.enqueued_at, e.sequence, e.execution)  # noqa: E731
        return sorted(self._those(READY), key=key)

    def active(self, lane: LaneId | None) -> list[QueueItem]:
        if lane is None:
            return self._those(HANDED)
        return [e for e in self._those(READY, HANDED) if e.lane == lane]

    def admit(self, lane: LaneId | None, most: int | None, count: int) -> list[QueueItem]:
        free = count if most is None else max(min(count, most - len(self.active(lane))), 0)
        given = self.waiting(lane)[:free]
        for item in given:
            self.states[item.execution] = HANDED if lane is None else READY
        return given

    def holds_slot(self, execution: ExecutionId) -> bool:
        state = self.states.get(execution)
        alone = state is not None and self.items[execution].lane is None
        return state == HANDED or (state == READY and not alone)

    def leave(self, execution: ExecutionId) -> None:
        del self.states[execution]

    def _those(self, *states: str) -> list[QueueItem]:
        return [self.items[one] for one, state in self.states.items() if state in states]


class QueueMachine(RuleBasedStateMachine):
    """`pause` is a limit of 0, as the flow asks for it; a restart of Redis also loses everything."""

    def __init__(self, world: World, runner: asyncio.Runner) -> None:
        super().__init__()
        self.world = world
        self.run = runner.run
        self.model = Model()
        self.limits: dict[int | None, int | None] = dict.fromkeys([0, 1, None], 2)
        self.paused: set[int | None] = set()
        self.seen: list[ExecutionId] = []

    @property
    def queue(self) -> ExecutionQueue:
        queue: ExecutionQueue = (
            self.world.pair if isinstance(self.world, RedisWorld) else self.world.queue
        )
        return queue

    def lane(self, where: int | None) -> LaneId | None:
        return None if where is None else self.lanes[where]

    def limit(self, where: int | None) -> int | None:
        return 0 if where in self.paused else self.limits[where]

    def somebody(self, number: int) -> ExecutionId:
        return self.seen[number % len(self.seen)]

    @initialize()
    def begin(self) -> None:
        self.run(self.world.clear())
        self.lanes = [self.run(self.world.lane(f"a.{i}")) for i in range(LANES)]

    @rule(where=WHERE, priority=PRIORITIES, later=LATER)
    def enqueue(self, where: int | None, priority: Priority, later: int) -> None:
        later_by = timedelta(microseconds=later)
        item = self.run(self.world.item(self.lane(where), priority, later=later_by))
        self.seen.append(item.execution)
        self.enter(item)

    def enter(self, item: QueueItem) -> None:
        self.model.enter(item)
        assert self.run(self.queue.enqueue(item)) == self.position(item.execution)

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE)
    def enqueue_again(self, number: int) -> None:
        """A repeated message: for one that ended it would be a new attempt, so only those that are there."""
        execution = self.somebody(number)
        if execution in self.model.states:
            item = self.model.items[execution]
            expected = self.position(execution) or 0
            assert self.run(self.queue.enqueue(item)) == expected

    @rule(where=WHERE, count=st.integers(min_value=0, max_value=4))
    def admit(self, where: int | None, count: int) -> None:
        lane, most = self.lane(where), self.limit(where)
        before = len(self.model.active(lane))
        expected = self.model.admit(lane, most, count)
        found = self.run(self.queue.try_schedule_many(lane, most, count))
        assert [one.execution for one in found] == [one.execution for one in expected]
        assert most is None or before + len(found) <= max(most, before)

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE)
    def end(self, number: int) -> None:
        """Completed or failed, once or again, or said of one that never held a slot."""
        execution = self.somebody(number)
        expected = self.model.holds_slot(execution)
        if expected:
            self.model.leave(execution)
        assert self.run(self.queue.release(execution)) is expected

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE)
    def cancel(self, number: int) -> None:
        execution = self.somebody(number)
        expected = execution in self.model.states
        if expected:
            self.model.leave(execution)
        assert self.run(self.queue.remove(execution)) is expected

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE, keep=st.booleans())
    def retry(self, number: int, keep: bool) -> None:
        """The slot is free for the others, and the next attempt takes the old place or the end."""
        execution = self.somebody(number)
        if not self.model.holds_slot(execution):
            return
        item = self.model.items[execution]
        self.model.leave(execution)
        assert self.run(self.queue.release(execution))
        if not keep:
            item = msgspec.structs.replace(item, sequence=self.world.next_sequence(item.lane))
        self.enter(item)

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE)
    def put_back(self, number: int) -> None:
        execution = self.somebody(number)
        expected = self.model.holds_slot(execution)
        if expected:
            handed = self.model.states[execution] == HANDED
            self.model.states[execution] = READY if handed else QUEUED
        assert self.run(self.queue.put_back(execution)) is expected

    @precondition(lambda self: self.seen)
    @rule(number=ANYONE, priority=PRIORITIES)
    def reprioritize(self, number: int, priority: Priority) -> None:
        execution = self.somebody(number)
        expected = self.model.states.get(execution) in (QUEUED, READY)
        if expected:
            item = msgspec.structs.replace(self.model.items[execution], priority=priority)
            self.model.items[execution] = item
        assert self.run(self.queue.update_priority(execution, priority)) is expected

    @rule(where=WHERE, limit=LIMITS)
    def change_limit(self, where: int | None, limit: int | None) -> None:
        self.limits[where] = limit

    @rule(where=WHERE)
    def pause_or_resume(self, where: int | None) -> None:
        self.paused ^= {where}

    @rule(lost=st.booleans())
    def restart(self, lost: bool) -> None:
        self.run(self.world.lose_everything() if lost else self.world.restart())

    @invariant()
    def looks_as_the_model(self) -> None:
        for where in (0, 1, None):
            self.run(self.compare(self.lane(where)))

    async def compare(self, lane: LaneId | None) -> None:
        waiting = self.model.waiting(lane)
        active = len(self.model.active(lane))
        assert await self.queue.get_queue_status(lane) == QueueStatus(len(waiting), active)
        expected = {p: sum(e.priority is p for e in waiting) for p in Priority}
        assert await self.queue.get_pending_by_priority(lane) == expected
        for execution in [item.execution for item in waiting[:1] + waiting[-1:]]:
            assert await self.queue.position(execution) == self.position(execution)

    def position(self, execution: ExecutionId) -> int | None:
        state = self.model.states.get(execution)
        if state not in (QUEUED, READY):
            return None
        lane = self.model.items[execution].lane if state == QUEUED else None
        return [item.execution for item in self.model.waiting(lane)].index(execution) + 1

    def teardown(self) -> None:
        """Whatever happened: let everyone go, and nothing is held any more."""
        for execution in list(self.model.states):
            assert self.run(self.queue.remove(execution))
        for where in (0, 1, None):
            status = self.run(self.queue.get_queue_status(self.lane(where)))
            assert status == QueueStatus(0, 0)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_order_limits_and_slots_hold_whatever_happens(
    closed_world: World, runner: asyncio.Runner
) -> None:
    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(closed_world, runner)

    runner.run(closed_world.__aenter__())
    # To make a failure smaller takes longer than a test may; its steps are told as they were.
    options: dict[str, Any] = {"deadline": None, "database": None, "phases": [Phase.generate]}
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(max_examples=30, stateful_step_count=40, **options),
        )
    finally:
        runner.run(closed_world.__aexit__())
