"""The heart beats from its own thread: whatever the worker does, and only for as long as the worker does anything."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.errors import DatabaseUnavailable
from attune.kernel.ids import WorkerId
from attune.kernel.settings import WorkerType
from attune.pipeline.workers.beats import NameTaken, beat, sign_off
from attune.pipeline.workers.model import Worker, WorkerStatus
from attune.worker.heart_line import OwnLine, SharedLine
from attune.worker.heartbeat import Heartbeat
from harness.control_plane import eventually
from harness.waiting import wait_until

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WORKER = Worker(
    id=WorkerId(7),
    name="w",
    worker_type=WorkerType.LOCAL,
    host=None,
    port=None,
    status=WorkerStatus.ACTIVE,
    capacity=1,
    supported_runtimes=[],
    labels={},
    taints=[],
    incarnation="i",
    last_heartbeat=NOW,
    created=NOW,
    updated=NOW,
)
LONG = 3600.0


class Rows:
    """In place of the database: remembers what the thread writes, and answers as it was told to."""

    def __init__(self, *answers: timedelta | Exception | None) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self.answers = list(answers)
        self.hangs = False

    async def run(self, step: Any, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((step, args, kwargs))
        if self.hangs:
            await asyncio.Event().wait()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Nothing is held."""

    @property
    def beats(self) -> int:
        return sum(step is beat for step, _, _ in self.calls)


def heart(rows: Rows, *, interval: float = 0.01, stale: float = LONG) -> Heartbeat:
    return Heartbeat(WORKER, rows, SystemClock(), interval=interval, stale=stale)


async def until(heartbeat: Heartbeat, living: asyncio.Task[None]) -> None:
    """Stop it, and let the task be over."""
    await heartbeat.stop()
    await asyncio.wait({living}, timeout=10)
    assert living.done()


async def test_f26_a_busy_loop_does_not_look_like_a_dead_worker() -> None:
    rows = Rows()
    heartbeat = heart(rows)
    living = await heartbeat.start()
    # Nothing is awaited here, so the worker's loop stands still for as long as this takes.
    wait_until(lambda: rows.beats >= 20)
    assert not heartbeat.is_stale
    await until(heartbeat, living)
    living.result()


async def test_a_loop_that_stands_still_for_too_long_silences_the_heart_until_it_turns() -> None:
    rows = Rows()
    heartbeat = heart(rows, stale=0.3)
    living = await heartbeat.start()
    wait_until(lambda: heartbeat.is_stale)
    silent = rows.beats

    async def beats_again() -> bool:
        return rows.beats > silent

    await eventually(beats_again)
    assert not heartbeat.is_stale
    await until(heartbeat, living)


async def test_a_beat_that_failed_is_tried_again_long_before_the_next_is_due() -> None:
    rows = Rows(DatabaseUnavailable("away"), RuntimeError("a fault of ours"))
    heartbeat = heart(rows, interval=4)
    living = await heartbeat.start()
    wait_until(lambda: rows.beats == 3, timeout=3)
    await until(heartbeat, living)
    living.result()


async def test_a_worker_whose_name_is_taken_is_told_and_its_heart_stops() -> None:
    rows = Rows(None, NameTaken("another has come"))
    heartbeat = heart(rows)
    living = await heartbeat.start()
    with pytest.raises(NameTaken, match="another has come"):
        await asyncio.wait_for(living, 10)
    assert heartbeat.is_replaced
    assert rows.beats == 2
    await heartbeat.stop("replaced")
    assert rows.beats == len(rows.calls) == 2


async def test_a_worker_that_was_given_up_hears_of_it_in_its_own_loop() -> None:
    rows = Rows(timedelta(seconds=40))
    heartbeat = heart(rows, interval=LONG)
    heard = asyncio.Event()
    heartbeat.on_back = heard.set
    living = await heartbeat.start()
    await asyncio.wait_for(heard.wait(), 10)
    await until(heartbeat, living)


async def test_it_leaves_first_beats_on_and_signs_off_last() -> None:
    rows = Rows()
    heartbeat = heart(rows)
    living = await heartbeat.start()
    wait_until(lambda: rows.beats >= 1)
    await heartbeat.leave(10)
    assert heartbeat.has_left
    leaving = [kwargs["leaving"] for _, _, kwargs in rows.calls]
    assert leaving == sorted(leaving)
    told = len(rows.calls)
    wait_until(lambda: rows.beats >= told + 3)
    assert all(kwargs["leaving"] for _, _, kwargs in rows.calls[told:])
    await heartbeat.stop("2 executions did not finish in time")
    await asyncio.wait({living}, timeout=10)
    [last] = [args for step, args, _ in rows.calls if step is sign_off]
    assert last[:3] == (7, "i", "2 executions did not finish in time")
    [signed] = [at for at, (step, _, _) in enumerate(rows.calls) if step is sign_off]
    assert len(rows.calls) <= signed + 2


async def test_a_database_that_hangs_does_not_keep_it_from_stopping() -> None:
    rows = Rows()
    rows.hangs = True
    heartbeat = heart(rows)
    living = await heartbeat.start()
    wait_until(lambda: rows.beats == 1)
    began = time.monotonic()
    await heartbeat.leave(0.1)
    await heartbeat.stop()
    assert time.monotonic() - began < 8
    assert not heartbeat.has_left
    living.cancel()


class Connection:
    """One of several that a line makes; only the last one answers."""

    def __init__(self, *, works: bool) -> None:
        self.works = works
        self.open_ = False

    async def open(self) -> None:
        self.open_ = True

    async def close(self) -> None:
        self.open_ = False

    async def run(self, step: Any, *args: Any) -> Any:
        if not self.works:
            await asyncio.Event().wait()
        return await step(None, *args)


async def _double(_tx: Any, number: int) -> int:
    return 2 * number


async def test_a_connection_that_hangs_is_left_behind_for_a_new_one() -> None:
    made = [Connection(works=False), Connection(works=True)]
    coming = iter(made)
    line = OwnLine(lambda: next(coming), patience=0.05)  # type: ignore[arg-type,return-value]
    with pytest.raises(DatabaseUnavailable, match=r"did not answer within 0\.05 s"):
        await line.run(_double, 1)
    assert await line.run(_double, 2) == 4
    assert await line.run(_double, 3) == 6
    await line.close()
    assert not any(one.open_ for one in made)


async def test_a_shared_database_is_asked_through_the_loop_that_opened_it() -> None:
    loops = []

    class Shared:
        async def run(self, step: Any, *args: Any) -> Any:
            loops.append(asyncio.get_running_loop())
            return await step(None, *args)

    line = SharedLine(Shared(), patience=5)  # type: ignore[arg-type]
    answer = await asyncio.to_thread(lambda: asyncio.run(line.run(_double, 21)))
    assert answer == 42
    assert loops == [asyncio.get_running_loop()]
