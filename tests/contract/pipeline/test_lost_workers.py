"""Who is silent for three heartbeats is given up, by executors that have listened for long enough."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from attune.kernel.errors import DatabaseUnavailable
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.flow import Flow
from attune.pipeline.processors.worker_health import LostWorkers
from attune.pipeline.workers.beats import NameTaken, beat
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.worker_rows import beat_of, events, first, history, status

S = ExecutionStatus
STALE = timedelta(seconds=30)


class TestLostWorkers:
    """Beats are ten seconds apart, so that thirty seconds of silence mean loss."""

    def executor(self, bench: Bench, name: str = "executor") -> tuple[Flow, LostWorkers]:
        flow = bench.new_flow(name, through=True, stale=STALE)
        return flow, LostWorkers(flow, bench.clock)

    async def watch(self, bench: Bench, duty: LostWorkers, seconds: float) -> None:
        """Pass after pass for so long, as the duty wants them."""
        while seconds > 0:
            await duty.run_once()
            rest = min(duty.until_next(), seconds)
            bench.step(rest)
            seconds -= rest
        await duty.run_once()
        duty.until_next()

    async def test_f18_one_that_is_silent_for_three_beats_is_lost_with_the_downtime(
        self, bench: Bench
    ) -> None:
        _, duty = self.executor(bench)
        await self.watch(bench, duty, 29)
        assert await status(bench) == "active"
        await self.watch(bench, duty, 1.1)
        assert await status(bench) == "inactive"
        [registered, lost] = await history(bench)
        assert (registered.event, lost.event) == ("registered", "lost")
        assert lost.downtime_seconds == pytest.approx(30, abs=0.2)

    async def test_what_it_held_goes_to_another_at_once(self, bench: Bench) -> None:
        flow, duty = self.executor(bench)
        [execution] = await bench.ask(flow=flow)
        await self.watch(bench, duty, 20)
        other = await bench.come("other", 10)
        await self.watch(bench, duty, 15)
        found = await bench.execution(execution)
        assert (found.status, found.attempt) == (S.SCHEDULED, 2)
        holder = "SELECT worker FROM entry WHERE execution = :id"
        assert await bench.value(int, holder, id=execution) == other.id

    async def test_one_that_beats_is_not_lost(self, bench: Bench) -> None:
        _, duty = self.executor(bench)
        for _ in range(10):
            await self.watch(bench, duty, 10)
            await beat_of(bench)
        assert await events(bench) == ["registered"]

    async def test_nobody_is_lost_before_an_executor_has_watched_for_a_beat_and_a_half(
        self, bench: Bench
    ) -> None:
        bench.step(3600)
        _, duty = self.executor(bench)
        await self.watch(bench, duty, 14)
        assert await status(bench) == "active"
        await self.watch(bench, duty, 1.1)
        assert await status(bench) == "inactive"

    async def test_after_a_failed_pass_those_who_live_get_time_to_be_heard(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flow, duty = self.executor(bench)
        await self.watch(bench, duty, 20)
        with monkeypatch.context() as patched:

            async def away(*_: Any, **__: Any) -> None:
                raise DatabaseUnavailable("away")

            patched.setattr(flow.database, "read", away)
            with pytest.raises(DatabaseUnavailable):
                await duty.run_once()
            assert duty.until_next() <= 5
        bench.step(60)
        await self.watch(bench, duty, 10)
        await beat_of(bench)
        await self.watch(bench, duty, 25)
        assert await events(bench) == ["registered"]

    async def test_an_executor_that_was_stopped_for_a_while_judges_nobody_by_it(
        self, bench: Bench
    ) -> None:
        _, duty = self.executor(bench)
        await self.watch(bench, duty, 20)
        bench.step(600)
        await duty.run_once()
        assert await status(bench) == "active"

    async def test_it_sleeps_until_the_next_would_be_lost(self, bench: Bench) -> None:
        _, duty = self.executor(bench)
        await self.watch(bench, duty, 27)
        assert duty.until_next() == pytest.approx(3, abs=0.2)

    async def test_two_executors_give_a_worker_up_once(self, bench: Bench) -> None:
        _, one = self.executor(bench, "one")
        _, two = self.executor(bench, "two")
        for _ in range(40):
            await asyncio.gather(one.run_once(), two.run_once())
            one.until_next(), two.until_next()
            bench.step(1)
        assert await events(bench) == ["registered", "lost"]

    async def test_one_that_leaves_and_still_beats_keeps_what_it_finishes(
        self, bench: Bench
    ) -> None:
        flow, duty = self.executor(bench)
        [execution] = await bench.ask(flow=flow)
        for _ in range(6):
            await beat_of(bench, leaving=True)
            await self.watch(bench, duty, 10)
        assert await status(bench) == "inactive"
        assert (await bench.execution(execution)).attempt == 1
        assert await events(bench) == ["registered"]
        await self.watch(bench, duty, 31)
        assert (await bench.execution(execution)).attempt == 2

    async def test_one_that_comes_back_is_active_and_tells_for_how_long_it_was_gone(
        self, bench: Bench
    ) -> None:
        _, duty = self.executor(bench)
        await self.watch(bench, duty, 40)
        assert await status(bench) == "inactive"
        silence = await beat_of(bench)
        assert silence == timedelta(seconds=40)
        assert await beat_of(bench) is None
        assert await status(bench) == "active"
        [_, _, back] = await history(bench)
        assert (back.event, back.downtime_seconds) == ("back", 40)

    async def test_a_beat_under_a_name_that_another_has_is_refused(self, bench: Bench) -> None:
        worker = await first(bench)
        with pytest.raises(NameTaken, match=r"worker\.name must be unique"):
            await bench.database.run(beat, worker, "before", bench.clock.now())
