"""A worker that keeps failing an action where others succeed is set aside for it, for a while."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Ended
from attune.pipeline.completion.steps import complete
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Outbox
from attune.pipeline.scheduling.asides import SOME_ASIDE, asides, asides_until
from attune.pipeline.scheduling.model import Terms
from attune.pipeline.scheduling.setbacks import AttemptEnd, Setbacks
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench

BAD, GOOD = WorkerId(101), WorkerId(102)
TERMS = Terms(failure_threshold=3, set_aside=timedelta(seconds=60))
_ROW = "SELECT failures, first_execution, until, error FROM worker_setback WHERE worker = :worker"


class Row(msgspec.Struct, frozen=True):
    failures: int
    first_execution: int
    until: datetime | None
    error: str | None


class Ledger:
    """Executions end by the test's word, and are told to `setbacks` of one process or of another."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.setbacks = Setbacks()
        self.asked = 0
        self._next = 0

    async def ends(
        self, worker: WorkerId, *results: bool, by: Setbacks | None = None, ref: str = "a.one"
    ) -> list[ExecutionId]:
        """So many executions, told in one batch."""
        ends: list[AttemptEnd] = []
        for ok in results:
            execution = await self.row(worker, "completed" if ok else "failed", ref)
            error = None if ok else f"error of {execution}"
            ends.append(AttemptEnd(execution, ref, ok, error))
        await self.tell(worker, ends, by)
        return [one.execution for one in ends]

    async def tell(
        self, worker: WorkerId, ends: list[AttemptEnd], by: Setbacks | None = None
    ) -> None:
        async def step(tx: Tx) -> None:
            counted = _Counted(tx)
            setbacks = by or self.setbacks
            await setbacks.note_ends(counted, worker, ends, TERMS, self.now)  # type: ignore[arg-type]
            self.asked = counted.statements

        await self.bench.database.run(step)

    async def row(self, worker: WorkerId, status: str, ref: str = "a.one") -> ExecutionId:
        self._next += 1
        await self.bench.execute(
            """INSERT INTO execution (id, action_ref, definition, status, attempt, priority, worker,
                      config, created, updated)
               VALUES (:id, :ref, 1, :status, 1, 2, :worker, '{}', :now, :now)""",
            id=self._next,
            ref=ref,
            status=status,
            worker=worker,
            now=self.now,
        )
        return ExecutionId(self._next)

    async def setback(self, worker: WorkerId = BAD) -> Row | None:
        found: Row | None = await self.bench.value(Row, _ROW, worker=worker)
        return found

    async def aside(self) -> set[tuple[int, str]]:
        return set(await self.bench.database.read(asides, self.now))

    async def history(self) -> list[str]:
        sql = "SELECT event FROM worker_history WHERE worker = :worker ORDER BY at, id"
        return await self.bench.values(str, sql, worker=BAD)

    @property
    def now(self) -> datetime:
        return self.bench.clock.now()


class _Counted:
    """A transaction that counts what is asked of the database."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        if name != "on_commit":
            self.statements += 1
        return getattr(self._tx, name)


@pytest.fixture
async def ledger(bench: Bench) -> AsyncIterator[Ledger]:
    yield Ledger(bench)
    await bench.execute("DELETE FROM execution")


async def test_it_is_set_aside_once_it_has_failed_often_enough_and_another_has_not(
    ledger: Ledger,
) -> None:
    [first, _] = await ledger.ends(BAD, False, False)
    await ledger.ends(GOOD, True)
    assert await ledger.aside() == set()
    [third] = await ledger.ends(BAD, False)
    assert await ledger.aside() == {(BAD, "a.one")}
    until = ledger.now + timedelta(seconds=60)
    assert await ledger.setback() == Row(3, first, until, f"error of {third}")
    assert await ledger.bench.database.read(asides_until, ledger.now) == {(BAD, "a.one"): until}


async def test_it_can_be_seen_in_the_history_of_the_worker(ledger: Ledger) -> None:
    await ledger.ends(GOOD, True)
    await ledger.ends(BAD, False, False, False)
    await ledger.ends(GOOD, True)
    assert await ledger.history() == []
    [last] = await ledger.ends(BAD, False)
    assert await ledger.history() == ["set_aside"]
    about = "FROM worker_history WHERE event = 'set_aside'"
    text = await ledger.bench.value(str, f"SELECT text {about}")
    assert text.startswith("a.one failed 4 times in a row; set aside for it until ")
    assert text.endswith(f": error of {last}")
    assert await ledger.bench.value(int, f"SELECT execution {about}") == last


async def test_what_fails_everywhere_sets_nobody_aside(ledger: Ledger) -> None:
    await ledger.ends(GOOD, True)
    for _ in range(4):
        await ledger.ends(BAD, False)
        await ledger.ends(GOOD, False)
    assert await ledger.aside() == set()


async def test_its_own_success_and_that_of_another_action_prove_nothing(ledger: Ledger) -> None:
    await ledger.ends(BAD, False, False)
    await ledger.ends(GOOD, True, ref="a.two")
    await ledger.row(BAD, "completed")
    await ledger.ends(BAD, False)
    assert await ledger.aside() == set()


async def test_an_execution_that_failed_here_and_succeeded_elsewhere_is_proof(
    ledger: Ledger,
) -> None:
    [first] = await ledger.ends(BAD, False)
    await ledger.bench.execute(
        "UPDATE execution SET status = 'completed', worker = :good WHERE id = :id",
        good=GOOD,
        id=first,
    )
    await ledger.ends(BAD, False, False)
    assert await ledger.aside() == {(BAD, "a.one")}


async def test_proof_is_found_before_a_backlog_however_long(ledger: Ledger) -> None:
    await ledger.ends(BAD, False, False)
    await ledger.ends(GOOD, True)
    [last] = await ledger.ends(BAD, False, ref="a.two")
    await ledger.bench.execute(
        """INSERT INTO execution (id, action_ref, definition, status, attempt, priority, config,
                  created, updated)
           SELECT v.id, 'a.one', 1, 'requested', 1, 2, '{}', :now::timestamptz, :now::timestamptz
             FROM ROWS(:rows AS v(id bigint))""",
        rows=[(last + number,) for number in range(10, 3000)],
        now=ledger.now,
    )
    await ledger.ends(BAD, False)
    assert (BAD, "a.one") in await ledger.aside()


async def test_a_success_wipes_the_slate(ledger: Ledger) -> None:
    await ledger.ends(BAD, False, False)
    await ledger.ends(GOOD, True)
    await ledger.ends(BAD, True)
    assert await ledger.setback() is None
    [_, after, _] = await ledger.ends(BAD, True, False, False)
    row = await ledger.setback()
    assert row is not None
    assert (row.failures, row.first_execution, row.until) == (2, after, None)


async def test_after_the_time_it_gets_a_chance_and_one_more_failure_sets_it_aside_again(
    ledger: Ledger,
) -> None:
    await ledger.ends(BAD, False)
    await ledger.ends(GOOD, True)
    await ledger.ends(BAD, False, False)
    ledger.bench.step(59)
    await ledger.ends(BAD, False)
    assert await ledger.history() == ["set_aside"]
    ledger.bench.step(1)
    assert await ledger.aside() == set()
    await ledger.ends(BAD, False)
    assert await ledger.aside() == {(BAD, "a.one")}
    row = await ledger.setback()
    assert row is not None
    assert (row.failures, row.until) == (5, ledger.now + timedelta(seconds=60))
    assert await ledger.history() == ["set_aside", "set_aside"]


async def test_if_the_chance_is_taken_it_is_as_any_other_and_that_is_told(ledger: Ledger) -> None:
    await ledger.ends(BAD, False)
    await ledger.ends(GOOD, True)
    await ledger.ends(BAD, False, False)
    ledger.bench.step(60)
    await ledger.ends(BAD, True)
    assert await ledger.setback() is None
    assert await ledger.history() == ["set_aside", "taken_up"]


async def test_what_goes_well_asks_nothing_of_the_database(ledger: Ledger) -> None:
    await ledger.ends(GOOD, True)
    assert ledger.asked == 1
    await ledger.ends(GOOD, True, True)
    assert ledger.asked == 0
    await ledger.ends(GOOD, False)
    assert ledger.asked == 1
    await ledger.ends(GOOD, True, ref="a.two")
    assert ledger.asked == 0
    await ledger.ends(GOOD, True)
    assert ledger.asked >= 1
    await ledger.ends(GOOD, True)
    assert ledger.asked == 0


async def test_a_row_that_another_process_made_is_wiped_as_well(ledger: Ledger) -> None:
    await ledger.ends(BAD, True)
    await ledger.ends(BAD, False, by=Setbacks())
    ledger.bench.step(10)
    await ledger.ends(BAD, True)
    assert await ledger.setback() is None


async def test_a_step_that_does_not_commit_is_not_remembered(ledger: Ledger) -> None:
    await ledger.ends(BAD, True)

    async def fails(tx: Tx) -> None:
        end = AttemptEnd(ExecutionId(1), "a.one", False, "x")
        await ledger.setbacks.note_ends(tx, BAD, [end], TERMS, ledger.now)
        raise KeyError

    with pytest.raises(KeyError):
        await ledger.bench.database.run(fails)
    await ledger.ends(BAD, True)
    assert ledger.asked == 0


async def test_whether_anybody_is_set_aside_can_be_asked_in_passing(ledger: Ledger) -> None:
    some = f"SELECT {SOME_ASIDE}"
    assert not await ledger.bench.value(bool, some, now=ledger.now)
    await ledger.ends(BAD, False)
    await ledger.ends(GOOD, True)
    await ledger.ends(BAD, False, False)
    assert await ledger.bench.value(bool, some, now=ledger.now)
    ledger.bench.step(60)
    assert not await ledger.bench.value(bool, some, now=ledger.now)


async def test_ends_that_workers_report_count_and_the_next_goes_to_another(bench: Bench) -> None:
    flow = bench.new_flow("strict", through=True, failure_threshold=2)
    first, second = await bench.ask(count=2, flow=flow)
    other = (await bench.come("other", 5)).id
    [proof] = await bench.ask(flow=flow)
    await bench.execute(
        "UPDATE execution SET worker = :other WHERE id = :id", other=other, id=proof
    )
    await bench.execute(
        "UPDATE entry SET worker = :other WHERE execution = :id", other=other, id=proof
    )
    word = await bench.word(proof, ExecutionStatus.COMPLETED, bench.clock.now())
    await complete_by(bench, flow, other, word)
    await bench.end(first, second, status=ExecutionStatus.FAILED, flow=flow)
    [following] = await bench.ask(flow=flow)
    sql = "SELECT worker FROM entry WHERE execution = :id"
    assert await bench.value(int, sql, id=following) == other
    again = await bench.word(following, ExecutionStatus.COMPLETED, bench.clock.now())
    await complete_by(bench, flow, other, again)


async def complete_by(bench: Bench, flow: Flow, worker: WorkerId, word: Ended) -> None:
    async def end(tx: Tx) -> None:
        outbox = Outbox(tx, flow.mail)
        await complete(tx, flow.scheduler, outbox, worker, [word], bench.clock.now())

    await bench.database.run(end)
