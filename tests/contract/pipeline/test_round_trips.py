"""What a request and an end cost in round trips to PostgreSQL: where a server is far, they are what time goes to."""

from typing import Any

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.store.postgresql_session import Call, Session
from tests.contract.pipeline.bench import Bench

pytestmark = pytest.mark.parametrize("bench", ["postgresql"], indirect=True)


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The statements of each, without the spaces between their words."""
    told: list[list[str]] = []
    ask = Session.ask

    async def noted(session: Session, *calls: Call) -> Any:
        told.append([" ".join(call.sql.split()) for call in calls])
        return await ask(session, *calls)

    monkeypatch.setattr(Session, "ask", noted)
    return told


async def test_a_request_goes_to_a_worker_in_four(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.ask("a.one", 2)
    round_trips.clear()
    [one] = await bench.ask("a.one")
    assert len(round_trips) == 4
    assert (round_trips[0][0], round_trips[-1][-1]) == ("BEGIN", "COMMIT")
    assert one in await bench.in_hand("a.one")


async def test_an_end_and_all_that_follows_from_it_are_two(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.policy("a.one", concurrency_limit=1)
    warm, first, second = await bench.ask("a.one", 3)
    await bench.end(warm)
    word = await bench.word(first, ExecutionStatus.COMPLETED, bench.clock.now())
    round_trips.clear()
    completed = await bench.complete(word)
    assert [one.execution for one in completed.handed] == [second]
    [*_, locked, written] = round_trips
    assert (locked[0], written[-1]) == ("BEGIN", "COMMIT")


async def test_the_pools_that_lanes_share_are_locked_before_them_in_the_same_one(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.policy(over="a", concurrency_limit=1)
    [first], [second] = await bench.ask("a.one"), await bench.ask("a.two")
    word = await bench.word(first, ExecutionStatus.COMPLETED, bench.clock.now())
    round_trips.clear()
    completed = await bench.complete(word)
    assert [one.execution for one in completed.handed] == [second]
    [locks] = [trip for trip in round_trips if trip[0] == "BEGIN"]
    assert ["FROM lane l" in one or "FROM pool" in one for one in locks[1:4]] == [True] * 3
    assert "pools IS NULL" in locks[1]
    assert "FROM pool" in locks[2]
    assert "FOR UPDATE OF l" in locks[3]
    assert "FOR UPDATE OF w" in locks[4]
