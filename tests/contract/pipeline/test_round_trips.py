"""What a request and an end cost in round trips to PostgreSQL: where a server is far, they are what time goes to."""

from typing import Any

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
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


async def test_a_request_goes_to_a_worker_in_two(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.ask("a.one", 2)
    round_trips.clear()
    [one] = await bench.ask("a.one")
    assert len(round_trips) == 2
    assert (round_trips[0][0], round_trips[-1][-1]) == ("BEGIN", "COMMIT")
    assert one in await bench.in_hand("a.one")


async def test_what_a_worker_gets_at_once_is_written_once(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.ask("a.one")
    round_trips.clear()
    await bench.ask("a.one", 3)
    sent = [one for trip in round_trips for one in trip]
    assert [one for one in sent if one.startswith(("UPDATE execution", "UPDATE entry"))] == []
    assert len([one for one in sent if one.startswith("INSERT INTO")]) == 3


async def test_the_workers_are_locked_after_the_lanes_in_the_same_one(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.ask("a.one")
    round_trips.clear()
    await bench.ask("a.one")
    assert [_lock_of(one) for one in round_trips[0] if "FOR UPDATE" in one] == ["lane", "worker"]


async def test_who_has_to_wait_for_a_slot_locks_no_worker(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.policy("a.one", concurrency_limit=1)
    await bench.ask("a.one", 2)
    round_trips.clear()
    await bench.ask("a.one")
    assert len(round_trips) == 2
    assert (round_trips[0][0], round_trips[-1][-1]) == ("BEGIN", "COMMIT")
    assert [_lock_of(one) for trip in round_trips for one in trip if "FOR UPDATE" in one] == [
        "lane"
    ]


async def test_workers_are_not_held_while_many_are_taken_in(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.ask("a.one", 60)
    round_trips.clear()
    ids = await bench.ask("a.one", 60)
    locks = [[_lock_of(one) for one in trip if "FOR UPDATE" in one] for trip in round_trips]
    assert [one for one in locks if one] == [["lane"], ["worker"]]
    assert set(ids) <= set(await bench.in_hand("a.one"))


async def test_a_key_is_taken_before_any_worker_is_locked(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    """Others wait for the key, and may have the workers."""
    await bench.ask("a.one")
    round_trips.clear()
    [one] = await bench.order([Request(action_ref="a.one", idempotency_key="once")])
    sent = [one for trip in round_trips for one in trip]
    [taken] = [n for n, one in enumerate(sent) if "ON CONFLICT" in one]
    [locked] = [n for n, one in enumerate(sent) if "FROM worker" in one and "FOR UPDATE" in one]
    assert taken < locked
    assert one.id in await bench.in_hand("a.one")


async def test_a_lane_that_is_to_be_arranged_is_never_locked_after_a_worker(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    """A slower step may have put it under words that are gone, and no version tells of that."""
    await bench.ask("a.one")
    await bench.execute("UPDATE lane SET stamp = 'of older words'")
    round_trips.clear()
    [one] = await bench.ask("a.one")
    sent = [one for trip in round_trips for one in trip]
    again = sent[sent.index("ROLLBACK") :]
    locks = [_lock_of(one) for one in again if "FOR UPDATE" in one]
    assert locks[-1] == "worker"
    assert set(locks[:-1]) <= {"lane", "pool"}
    assert one in await bench.in_hand("a.one")
    assert await bench.value(str, "SELECT stamp FROM lane") == ""


async def test_an_event_goes_to_a_worker_in_five(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await bench.rule(action_ref="a.one")
    await bench.emit()
    round_trips.clear()
    await bench.emit()
    assert len(round_trips) == 5
    assert len(await bench.in_hand("a.one")) == 2


async def test_an_end_and_all_that_follows_from_it_are_two(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await _end_with_another_behind_it(bench, round_trips)
    [*_, locked, written] = round_trips
    assert (locked[0], written[-1]) == ("BEGIN", "COMMIT")


async def test_no_pools_are_looked_for_where_a_lane_shared_nothing_before(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    await _end_with_another_behind_it(bench, round_trips)
    [locks] = [trip for trip in round_trips if trip[0] == "BEGIN"]
    assert [_lock_of(one) for one in locks if "FOR UPDATE OF" in one and "DELETE" not in one] == [
        "lane",
        "worker",
    ]


async def test_a_lane_that_came_to_share_a_pool_is_locked_after_the_pool(
    bench: Bench, round_trips: list[list[str]]
) -> None:
    """Its process takes it for one that shares nothing. It finds out, lets go of what it locked too early, and begins anew."""
    warm, first = await bench.ask("a.one", 2)
    await bench.end(warm)
    await bench.policy(over="a", concurrency_limit=1)
    await bench.flow.arrange()
    [second] = await bench.ask("a.two")
    word = await bench.word(first, ExecutionStatus.COMPLETED, bench.clock.now())
    round_trips.clear()
    completed = await bench.complete(word)
    assert [one.execution for one in completed.handed] == [second]
    sent = [one for trip in round_trips for one in trip]
    again = sent[sent.index("ROLLBACK") :]
    locks = [_lock_of(one) for one in again if "FOR UPDATE" in one and "DELETE" not in one]
    assert locks[:4] == ["lane", "pool", "lane", "worker"]


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


async def _end_with_another_behind_it(bench: Bench, round_trips: list[list[str]]) -> None:
    await bench.policy("a.one", concurrency_limit=1)
    warm, first, second = await bench.ask("a.one", 3)
    await bench.end(warm)
    word = await bench.word(first, ExecutionStatus.COMPLETED, bench.clock.now())
    round_trips.clear()
    completed = await bench.complete(word)
    assert [one.execution for one in completed.handed] == [second]


def _lock_of(sql: str) -> str:
    """The table whose rows the statement locks."""
    return next(table for table in ("pool", "lane", "worker") if f"FROM {table}" in sql)
