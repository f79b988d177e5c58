"""What a step costs in round trips to PostgreSQL, and what becomes of a session that something happened to."""

import asyncio
import random
import select
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.errors import InvalidInput
from attune.simulation.clock import ManualClock
from attune.store.database import Answer, Database, Tx
from attune.store.postgresql import PostgreSQLDatabase
from attune.store.postgresql_connect import connect
from attune.store.postgresql_session import Call, Session
from attune.store.postgresql_tx import PostgreSQLTx
from tests.contract.store.world import Label, Parcel, PostgreSQLWorld, add, labels, parcel

BOUND = 20.0

pytestmark = pytest.mark.parametrize("world", ["postgresql"], indirect=True)

WEIGH = "UPDATE parcel SET weight = weight + 1 WHERE label = :label"


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The first word of each statement, by round trip."""
    told: list[list[str]] = []
    ask = Session.ask

    async def noted(session: Session, *calls: Call) -> Any:
        told.append([call.sql.split()[0] for call in calls])
        return await ask(session, *calls)

    monkeypatch.setattr(Session, "ask", noted)
    return told


@pytest.fixture
async def other(world: PostgreSQLWorld, database: Database) -> AsyncIterator[Database]:
    found = world.database()
    await found.open()
    yield found
    await found.close()


async def until(database: Database, step: Any, *args: Any) -> None:
    async with asyncio.timeout(BOUND):
        while not await database.read(step, *args):
            await asyncio.sleep(0.01)


async def weigh_later(tx: Tx) -> Answer[Label]:
    await tx.later(WEIGH, label="a")
    await tx.later(WEIGH, label="a")
    return await tx.answer_later(Label, "SELECT id, label FROM parcel WHERE weight = 2")


async def test_a_transaction_begins_and_ends_with_its_statements(
    database: Database, round_trips: list[list[str]]
) -> None:
    async def look_and_weigh(tx: Tx) -> None:
        await labels(tx)
        await tx.later(WEIGH, label="a")

    await database.run(add, "a")
    round_trips.clear()
    answer = await database.run(weigh_later)
    assert [one.label for one in answer.rows] == ["a"], "each sees what those before it did"
    await database.run(look_and_weigh)
    await database.read(labels)
    assert round_trips == [
        ["BEGIN", "UPDATE", "UPDATE", "SELECT", "COMMIT"],
        ["BEGIN", "SELECT"],
        ["UPDATE", "COMMIT"],
        ["SELECT"],
    ]


async def test_a_step_that_asks_nothing_costs_nothing(
    database: Database, round_trips: list[list[str]]
) -> None:
    async def idle(tx: Tx) -> int:
        return 7

    round_trips.clear()
    assert await database.run(idle) == 7
    assert round_trips == []


async def test_a_step_that_is_cancelled_leaves_the_server_at_rest(
    world: PostgreSQLWorld, database: Database, other: Database
) -> None:
    async def linger(tx: Tx) -> None:
        await tx.execute(WEIGH, label="a")
        await tx.execute("SELECT pg_sleep(60)")

    async def sleepers(tx: Tx) -> int:
        return await tx.one(
            int,
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            " AND datname = current_database()",
        )

    async def nobody(tx: Tx) -> bool:
        return not await sleepers(tx)

    await database.run(add, "a")
    lingering = asyncio.create_task(database.run(linger))
    await until(other, sleepers)
    lingering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lingering
    await until(other, nobody)
    await other.run(weigh_later)  # nothing is locked any more
    assert await database.read(labels) == ["a"]


async def test_one_that_is_cancelled_while_it_is_rolled_back_keeps_no_session(
    world: PostgreSQLWorld, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rolling_back, ask = asyncio.Event(), Session.ask

    async def noted(session: Session, *calls: Call) -> Any:
        if calls[0].sql == "ROLLBACK":
            rolling_back.set()
        return await ask(session, *calls)

    async def look_twice(tx: Tx) -> None:
        await labels(tx)
        await labels(tx)

    clock, source = SystemClock(), random.Random(1)
    narrow = PostgreSQLDatabase(world.url, clock, source, max_connections=1, hears_wakes=False)
    await narrow.open()
    await narrow.read(look_twice)  # from now on it is known to look twice
    monkeypatch.setattr(Session, "ask", noted)
    reading = asyncio.create_task(narrow.read(look_twice))
    await rolling_back.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await narrow.read(labels) == []
    await narrow.close()


async def test_a_table_that_changed_since_it_was_read_is_read_as_it_is(
    world: PostgreSQLWorld, database: Database, other: Database
) -> None:
    async def whole(tx: Tx) -> list[Any]:
        assert isinstance(tx, PostgreSQLTx)
        await tx.execute(WEIGH, label="a")
        columns, [row] = await tx._fetch("SELECT * FROM parcel", {})
        return [columns[-1], row[-1]]

    async def change(tx: Tx) -> None:
        await tx.execute("ALTER TABLE parcel ADD COLUMN colour text DEFAULT 'red'")

    async def weights(tx: Tx) -> list[int]:
        return await tx.all(int, "SELECT weight FROM parcel")

    await database.run(add, "a")
    assert await database.run(whole) == ["note", None]
    await other.run(change)
    assert await database.run(whole) == ["colour", "red"]
    assert await database.read(weights) == [2]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_a_text_that_no_database_holds_is_refused_and_changes_nothing(
    database: Database, text: str
) -> None:
    async def alone(tx: Tx) -> None:
        await tx.execute("UPDATE parcel SET label = :text", text=text)

    async def in_a_list(tx: Tx) -> None:
        await tx.execute("UPDATE parcel SET weight = 9 WHERE label <> ALL(:texts)", texts=[text])

    async def in_a_row(tx: Tx) -> None:
        await tx.later("UPDATE parcel SET weight = 9 FROM ROWS(:rows AS v(t text))", rows=[(text,)])

    await database.run(add, "a")
    for step in (alone, in_a_list, in_a_row):
        with pytest.raises(InvalidInput):
            await database.run(step)
    assert await database.read(labels) == ["a"]


@pytest.mark.parametrize("text", ['"', "\\", '\\"{},', "NULL", "", " ", "é\n\t'", "{a,b}"])
async def test_any_other_text_is_the_same_in_a_list(database: Database, text: str) -> None:
    async def there_and_back(tx: Tx) -> list[str | None]:
        sql = "SELECT t FROM ROWS(:rows AS v(n bigint, t text)) ORDER BY n"
        return await tx.all(str, sql, rows=[(1, text), (2, None), (3, text)])

    assert await database.run(there_and_back) == [text, None, text]


async def test_more_than_a_socket_takes_at_once_goes_both_ways(database: Database) -> None:
    text = "0123456789" * 1_000_000

    async def there_and_back(tx: Tx) -> list[str]:
        for number in range(3):
            await tx.later("UPDATE parcel SET label = :text", text=f"{text}{number}")
        return await tx.all(str, "SELECT label FROM parcel")

    async def add_unindexed(tx: Tx) -> None:
        await tx.execute("ALTER TABLE parcel DROP CONSTRAINT parcel_label_key")
        await tx.insert(parcel, [Parcel(1, "a")])

    await database.run(add_unindexed)
    assert await database.run(there_and_back) == [f"{text}2"]


async def test_a_session_that_nobody_needed_for_long_goes(world: PostgreSQLWorld) -> None:
    clock = ManualClock()
    database = PostgreSQLDatabase(world.url, clock, random.Random(1), hears_wakes=False)
    await database.open()
    both = asyncio.Barrier(2)

    async def hold(tx: Tx) -> int:
        await both.wait()
        return await sessions(tx)

    async def sessions(tx: Tx) -> int:
        return await tx.one(
            int,
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'attune' AND datname = current_database()",
        )

    async def one_left(tx: Tx) -> bool:
        return await sessions(tx) == 1

    await asyncio.gather(database.run(hold), database.run(hold))
    assert await database.read(sessions) == 2
    await clock.advance(3600)
    await until(database, one_left)
    await database.close()


def wait_for(event: int, session: Session) -> None:
    """In place: the loop is to hear of everything at once."""
    poll = select.poll()
    poll.register(session._socket, event)
    assert poll.poll(BOUND * 1000)


async def test_a_link_that_breaks_in_the_middle_of_an_answer_is_noticed(
    world: PostgreSQLWorld,
) -> None:
    url = world.proxy.url_for(world.url)
    session = await connect(url, timeout=BOUND, command_timeout=BOUND)
    much, pause = Call("SELECT repeat('x', 20000)"), "SELECT pg_sleep($1)"
    await session.ask(much, Call(pause, [0.0]))
    answer = asyncio.create_task(session.ask(much, Call(pause, [60.0])))
    await asyncio.sleep(0)
    wait_for(select.POLLIN, session)
    world.proxy.cut()
    wait_for(select.POLLERR, session)
    with pytest.raises(psycopg.OperationalError):
        await answer
    assert session.closed.is_set()


async def test_a_link_that_breaks_right_after_an_answer_is_noticed(world: PostgreSQLWorld) -> None:
    url = world.proxy.url_for(world.url)
    session = await connect(url, timeout=BOUND, command_timeout=BOUND)
    await session.ask(Call("SELECT 1"))
    answer = asyncio.create_task(session.ask(Call("SELECT 1")))
    await asyncio.sleep(0)
    wait_for(select.POLLIN, session)
    world.proxy.cut()
    wait_for(select.POLLERR, session)
    [told] = await answer
    assert [*told.rows] == [(1,)]
    async with asyncio.timeout(BOUND):
        await session.closed.wait()
