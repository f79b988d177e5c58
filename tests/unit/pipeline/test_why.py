"""Words, places and times of an explanation, as values."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.placement import Needs
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import Gate, GateName, Rate
from attune.pipeline.queues.ahead import passes
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.estimate import Estimate
from attune.pipeline.queues.model import Waiter
from attune.pipeline.scheduling.model import Demand
from attune.pipeline.why.decide import (
    aside_text,
    cap_obstacle,
    described,
    full_obstacle,
    lane_obstacle,
    next_step,
    nobody_obstacle,
    turn_obstacle,
)
from attune.pipeline.why.forecast import forecast, rate_seconds
from attune.pipeline.why.model import Limit, Outlook

NOW = datetime(2026, 1, 1, tzinfo=UTC)
G = GateName


def gate(name: GateName = G.CONCURRENCY, **fields: Any) -> Gate:
    defaults = {"free": 0, "text": "closed", "limit": 2, "policy_ref": "a.policy"}
    return Gate(**{"name": name, **defaults, **fields})


def ids(*numbers: int) -> tuple[ExecutionId, ...]:
    return tuple(ExecutionId(number) for number in numbers)


WAITERS = st.builds(
    Waiter,
    st.integers(1, 99).map(ExecutionId),
    st.sampled_from(Priority),
    st.integers(1, 50),
    st.integers(0, 40).map(lambda seconds: NOW + timedelta(seconds=seconds)),
)


@given(WAITERS, WAITERS, st.sampled_from([None, 5.0, 0.1]))
def test_who_goes_first_is_counted_as_it_is_decided(
    one: Waiter, other: Waiter, ageing: float | None
) -> None:
    if other.band is not one.band:
        before = passes(one, ageing).get(other.band)
        counted = before is not None and other.enqueued_at < before
        assert counted == (due(other, ageing) < due(one, ageing))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (gate(G.PAUSE), "somebody must resume the queue of a.one"),
        (gate(G.WINDOW, until=NOW), "the policy a.policy opens at 2026-01-01T00:00:00Z"),
        (gate(G.WINDOW), "somebody must change the policy a.policy: none of its windows opens"),
        (
            gate(holders=ids(17, 18)),
            "one of the 2 executions that hold a slot of a.one must end: 17, 18",
        ),
        (
            gate(limit=1, holders=ids(17)),
            "the one execution that holds a slot of a.one must end: 17",
        ),
        (
            gate(limit=1, free=-2, holders=ids(1, 2, 3)),
            "3 of the 3 executions that hold a slot of a.one must end: 1, 2, 3",
        ),
        (gate(limit=0), "somebody must raise the limit of the policy a.policy, which is 0"),
        (
            gate(G.QUOTA, limit=9, holders=ids(*range(1, 10))),
            "one of the 9 executions that hold a slot of a.one must end: 1, 2, 3, 4, 5, …",
        ),
        (
            gate(G.RATE_LIMIT, until=NOW),
            "the rate of the policy a.policy lets the next one start at 2026-01-01T00:00:00Z",
        ),
        (
            gate(G.RATE_LIMIT, holders=ids(4)),
            "one that was admitted must begin, so that the rate of the policy a.policy counts its time: 4",
        ),
    ],
)
def test_each_gate_of_a_queue_says_what_would_open_it(found: Gate, words: str) -> None:
    assert lane_obstacle(found, "a.one", "a.one").remedy == words


def test_the_worker_that_is_needed_is_described() -> None:
    assert described(Demand(None)) == "a worker"
    python = Demand("python", needs=Needs(selector={"zone": "north", "gpu": "yes"}))
    assert described(python) == (
        "a worker with runtime python and label gpu=yes and label zone=north"
    )
    found = gate(G.WORKER, holders=ids(3, 4))
    assert nobody_obstacle(found, Demand("python")).remedy == (
        "a worker with runtime python must come"
    )
    assert full_obstacle(found, Demand("python")).remedy == (
        "a worker with runtime python must get free:"
        " one of the 2 executions that such workers have must end: 3, 4"
    )
    waits = gate(G.WORKER, holders=ids(3, 4), until=NOW)
    assert full_obstacle(waits, Demand("python")).remedy.endswith(
        "must end: 3, 4; or one that is set aside gets another chance at 2026-01-01T00:00:00Z"
    )
    nothing = full_obstacle(gate(G.WORKER, limit=0), Demand("python")).remedy
    assert nothing == "a worker with runtime python must come, or get room for more than 0"


@pytest.mark.parametrize(
    ("back", "out_of", "words"),
    [
        ([], 2, ""),
        ([NOW], 2, "; 1 worker is set aside for a.one (until 2026-01-01T00:00:00Z)"),
        (
            [NOW, NOW + timedelta(seconds=5)],
            3,
            "; 2 workers are set aside for a.one (the first until 2026-01-01T00:00:00Z)",
        ),
        (
            [NOW],
            1,
            "; all that can are set aside for a.one (the first until 2026-01-01T00:00:00Z), and get it all the same",
        ),
    ],
)
def test_who_is_set_aside_is_told_with_the_time(
    back: list[datetime], out_of: int, words: str
) -> None:
    assert aside_text(Demand(None, action_ref="a.one"), back, out_of) == words


def test_the_next_step_is_that_of_the_first_blocker_and_then_of_those_ahead() -> None:
    closed = cap_obstacle(gate(G.SYSTEM_CAP, holders=ids(3, 4)))
    words = "one of the 2 executions that workers have must end: 3, 4"
    assert next_step([], 0) is None
    assert next_step([closed], 0) == words
    assert next_step([closed], 1) == f"{words}; one other goes before it"
    assert next_step([closed], 3) == f"{words}; 3 others go before it"
    assert next_step([closed], None) == f"{words}; more than 100000 others go before it"
    turn = turn_obstacle(3, "must go", "somebody gives it")
    assert next_step([turn], 3) == "3 others must go before it"


class TestTheForecast:
    def test_the_slowest_limit_counts(self) -> None:
        limits = (Limit(1, 1, (0.0,)), Limit(10, 1, (0.0,)))
        assert forecast(Outlook(limits=limits), [10.0]) == Estimate(20.0, 20.0)

    def test_a_window_comes_first_and_those_who_run_now_are_gone_by_then(self) -> None:
        limits = (Limit(1, 1, (0.0,)),)
        assert forecast(Outlook(limits=limits, opens_in=100.0), [10.0]) == Estimate(110.0, 110.0)

    def test_a_rate_may_take_longer_than_the_slots(self) -> None:
        outlook = Outlook(limits=(Limit(5, 0),), at_least=30.0)
        assert forecast(outlook, [10.0]) == Estimate(30.0, 30.0)

    def test_where_anything_is_unknown_nothing_is_said(self) -> None:
        assert forecast(Outlook(opens_in=None), [10.0]) is None
        assert forecast(Outlook(limits=(Limit(1, None),)), [10.0]) is None
        assert forecast(Outlook(limits=(Limit(1, 0),)), []) is None
        assert forecast(Outlook(limits=(Limit(0, 0),)), [10.0]) is None

    @pytest.mark.parametrize(
        ("free", "opens_in", "ahead", "seconds"),
        [(2, 60, 1, 0), (2, 60, 2, 60), (0, 7, 0, 7), (0, 7, 1, 7), (0, 7, 2, 67), (-1, 7, 4, 127)],
    )
    def test_a_rate_lets_as_many_go_in_each_window(
        self, free: int, opens_in: float, ahead: int, seconds: float
    ) -> None:
        assert rate_seconds(Rate(2, 60), free, opens_in, ahead) == seconds
