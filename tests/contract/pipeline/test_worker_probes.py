"""Workers are asked over the bus: who lives and does not answer gets nothing new."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from attune.bus.topology import worker_queue
from attune.kernel.envelope import Envelope
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.processors.worker_health import WorkerProbes, WorkerProbesConfig
from attune.pipeline.workers.probes import answered
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.worker_rows import events, first, history, status
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


async def exactly(count: int, questions: list[Envelope]) -> None:
    async def enough() -> bool:
        return len(questions) >= count

    await eventually(enough)
    assert len(questions) == count


class TestProbes:
    """Questions are thirty seconds apart."""

    @pytest.fixture
    async def questions(self, bench: Bench) -> list[Envelope]:
        """What reaches the worker's queue; nobody answers."""
        heard: list[Envelope] = []

        async def hear(envelope: Envelope) -> None:
            if envelope.message_type is MessageType.WORKER_PROBE:
                heard.append(envelope)

        queue = worker_queue(await first(bench))
        await bench.bus.declare(queue)
        await bench.bus.consume(queue.name, hear)
        return heard

    def asker(self, bench: Bench, name: str = "executor") -> WorkerProbes:
        flow = bench.new_flow(name, through=True)
        config = WorkerProbesConfig(interval=30)
        return WorkerProbes(flow, bench.bus, bench.ids, bench.clock, config)

    async def passes(self, bench: Bench, seconds: float, *duties: WorkerProbes) -> None:
        for _ in range(round(seconds)):
            await asyncio.gather(*(duty.run_once() for duty in duties))
            for duty in duties:
                duty.until_next()
            bench.step(1)
        await bench.announcer.stop()

    async def answer(self, bench: Bench) -> list[WorkerId]:
        return await bench.database.run(answered, [await first(bench)], bench.clock.now())

    async def test_any_number_of_executors_ask_one_question_an_interval(
        self, bench: Bench, questions: list[Envelope]
    ) -> None:
        duties = [self.asker(bench, name) for name in ("one", "two", "three")]
        for asked in range(1, 4):
            await self.passes(bench, 1, *duties)
            await self.answer(bench)
            await self.passes(bench, 30, *duties)
            await exactly(asked, questions)

    async def test_one_that_does_not_answer_for_two_intervals_gets_nothing_new_until_it_does(
        self, bench: Bench, questions: list[Envelope]
    ) -> None:
        duty = self.asker(bench)
        [running] = await bench.ask()
        await self.passes(bench, 60, duty)
        assert await status(bench) == "active"
        await self.passes(bench, 2, duty)
        assert await status(bench) == "error"
        await exactly(2, questions)
        [waits] = await bench.ask("a.two", flow=bench.new_flow("other", through=False))
        await bench.new_flow("grace", through=True, no_worker_grace=timedelta(1)).schedule()
        assert (await bench.execution(waits)).status is S.REQUESTED
        assert (await bench.execution(running)).attempt == 1
        assert await self.answer(bench) == [await first(bench)]
        assert await status(bench) == "active"
        [_, unresponsive, responsive] = await history(bench)
        assert (unresponsive.event, responsive.event) == ("unresponsive", "responsive")
        assert "no answer" in (unresponsive.text or "")
        await bench.flow.schedule()
        assert (await bench.execution(waits)).status is S.SCHEDULED

    async def test_an_answer_in_time_is_nothing_to_tell(
        self, bench: Bench, questions: list[Envelope]
    ) -> None:
        duty = self.asker(bench)
        for _ in range(5):
            await self.passes(bench, 2, duty)
            assert await self.answer(bench) == []
            await self.passes(bench, 29, duty)
        await exactly(5, questions)
        assert await events(bench) == ["registered"]

    async def test_who_has_just_begun_to_listen_asks_again_before_it_judges(
        self, bench: Bench, questions: list[Envelope]
    ) -> None:
        await self.passes(bench, 2, self.asker(bench))
        bench.step(600)
        await self.passes(bench, 2, self.asker(bench, "new"))
        assert await status(bench) == "active"
        await exactly(2, questions)

    async def test_a_worker_answers_by_itself(self, world: World) -> None:
        await world.execute(
            "UPDATE worker SET status = 'error', asked_at = :now", now=long_ago(world)
        )
        duty = WorkerProbes(world.executor_flow, world.bus, world.ids, world.clock)
        await duty.run_once()

        async def has_answered() -> bool:
            sql = "SELECT count(*) FROM worker WHERE answered_at IS NOT NULL AND asked_at IS NULL"
            return bool(await world.value(int, sql))

        await eventually(has_answered)
        assert await status(world) == "active"
        assert (await events(world))[-1] == "responsive"


def long_ago(world: World) -> Any:
    return world.clock.now() - timedelta(days=1)
