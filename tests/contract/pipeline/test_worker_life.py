"""A worker in its process: it keeps what is its own, ends what is not, and goes without leaving anything behind."""

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from attune.kernel.configuration import load_settings
from attune.kernel.errors import InvalidSettings
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.workers.beats import NameTaken, mark_lost
from attune.pipeline.workers.model import Worker
from attune.services.worker_part import WorkerPart
from attune.store.database import Tx
from attune.worker import intake
from attune.worker.handoffs import hand_offs
from attune.worker.jobs import Jobs
from attune.worker.service import WorkerService
from harness.proxy import FaultProxy
from tests.contract.pipeline.worker_rows import events, first, history, status
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


def service_of(part: WorkerPart) -> WorkerService:
    assert part._service is not None
    return part._service


def jobs_of(part: WorkerPart) -> Jobs:
    return service_of(part)._jobs


async def begun(world: World, part: WorkerPart, **parameters: Any) -> ExecutionId:
    """An execution that its worker runs, and has said so."""
    execution = await world.run("core.sleep", **parameters)

    async def running() -> bool:
        return (await world.execution(execution.id)).status is S.RUNNING

    await eventually(running)
    assert jobs_of(part).holds(execution.id, 1)
    return execution.id


async def idle(part: WorkerPart) -> None:
    async def nothing_runs() -> bool:
        return not jobs_of(part).running()

    await eventually(nothing_runs)


async def test_where_one_process_is_everything_a_hand_off_is_not_read_again(
    still: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await still.start_worker()
    # A look at the rows reads whatever it finds, and might find this one first.
    await service_of(worker)._looking.stop()
    read: list[ExecutionId] = []

    async def reading(tx: Tx, worker: Worker, ids: Sequence[ExecutionId]) -> list[HandOff]:
        read.extend(ids)
        return await hand_offs(tx, worker, ids)

    monkeypatch.setattr(intake, "hand_offs", reading)
    execution = await still.run("core.echo", message="hi")
    ended = await still.ended(execution.id)
    assert ended.status is S.COMPLETED
    assert read == ([] if still.settings.embedded else [execution.id])


class TestJobsThatAreOursNoMore:
    async def test_f19_an_attempt_that_another_has_is_ended_and_nothing_is_written_of_it(
        self, still: World
    ) -> None:
        worker = await still.start_worker()
        execution = await begun(still, worker, seconds=60)
        await still.execute("UPDATE entry SET attempt = 2, worker = 99")
        await still.execute("UPDATE execution SET attempt = 2")
        await service_of(worker).look()
        await idle(worker)
        found = await still.execution(execution)
        assert (found.status, found.result) == (S.RUNNING, None)
        await still.execute("DELETE FROM entry")

    async def test_what_is_ours_goes_on_through_any_look(self, still: World) -> None:
        worker = await still.start_worker()
        execution = await begun(still, worker, seconds=0.5)
        for _ in range(5):
            await service_of(worker).look()
        assert (await still.ended(execution)).status is S.COMPLETED

    async def test_f20_nothing_begins_when_its_lease_is_nearly_over(self, still: World) -> None:
        worker = await still.start_worker()
        service = service_of(worker)
        await service._subscription.cancel()  # type: ignore[union-attr]
        execution = await still.run("core.noop")
        await still.execute(
            "UPDATE entry SET lease_expires_at = :then",
            then=still.clock.now() + timedelta(seconds=0.9),
        )
        await service.look()
        assert not jobs_of(worker).holds(execution.id, 1)
        await still.execute(
            "UPDATE entry SET lease_expires_at = :then",
            then=still.clock.now() + timedelta(seconds=60),
        )
        await service.look()
        assert (await still.ended(execution.id)).status is S.COMPLETED

    async def test_a_report_that_was_lost_is_made_again(self, still: World) -> None:
        worker = await still.start_worker()
        execution = await begun(still, worker, seconds=60)
        await still.execute("UPDATE execution SET status = 'scheduled'")
        await service_of(worker).look()

        async def running() -> bool:
            return (await still.execution(execution)).status is S.RUNNING

        await eventually(running)
        await still.flow.cancel(execution)
        assert (await still.ended(execution)).status is S.CANCELLED

    async def test_one_that_was_given_up_looks_at_its_rows_with_its_next_beat(
        self, still: World
    ) -> None:
        worker = await still.start_worker(heartbeat_interval=0.2)
        execution = await begun(still, worker, seconds=60)
        await still.execute("UPDATE entry SET attempt = 2, worker = 99")
        await still.execute("UPDATE execution SET attempt = 2")
        now = still.clock.now()
        assert await still.database.run(
            mark_lost, await first(still), now + timedelta(hours=1), now
        )
        await idle(worker)
        assert await status(still) == "active"
        assert await events(still) == ["registered", "lost", "back"]
        assert (await still.execution(execution)).status is S.RUNNING
        await still.execute("DELETE FROM entry")

    async def test_one_that_was_replaced_stops_and_touches_nothing_of_the_other(
        self, still: World
    ) -> None:
        first = still.worker("same", heartbeat_interval=0.2)
        living = await first.start()
        await begun(still, first, seconds=60)
        second = await still.start_worker("same", heartbeat_interval=0.2)
        with pytest.raises(NameTaken):
            await asyncio.wait_for(living, 20)
        own = await begun(still, second, seconds=60)
        await first.stop()
        assert (await still.execution(own)).attempt == 1
        assert await status(still) == "active"
        assert await events(still) == ["registered", "registered"]
        await still.flow.cancel(own)
        await still.ended(own)


class TestGoing:
    async def test_f24_it_goes_inactive_first_finishes_what_runs_and_says_goodbye(
        self, still: World
    ) -> None:
        worker = still.worker(shutdown_timeout=20)
        await worker.start()
        execution = await begun(still, worker, seconds=1.5)
        stopping = asyncio.create_task(worker.stop())

        async def inactive() -> bool:
            return await status(still) == "inactive"

        await eventually(inactive)
        assert (await still.execution(execution)).status is S.RUNNING
        assert await events(still) == ["registered"]
        await asyncio.wait_for(stopping, 20)
        found = await still.execution(execution)
        assert (found.status, found.attempt) == (S.COMPLETED, 1)
        assert await events(still) == ["registered", "stopped"]

    async def test_f24_what_it_has_not_begun_is_handed_back_at_once(self, still: World) -> None:
        worker = still.worker(shutdown_timeout=20)
        await worker.start()
        service = service_of(worker)
        running = await begun(still, worker, seconds=1.5)
        await service._subscription.cancel()  # type: ignore[union-attr]
        waiting = await still.run("core.noop")
        assert (await still.execution(waiting.id)).status is S.SCHEDULED
        await still.start_worker("other")
        stopping = asyncio.create_task(worker.stop())
        ended = await still.ended(waiting.id)
        assert ended.status is S.COMPLETED
        assert (await still.execution(running)).status is S.RUNNING
        await asyncio.wait_for(stopping, 20)
        assert (await still.ended(running)).attempt == 1

    async def test_f24_nothing_begins_once_it_was_told_to_go(self, still: World) -> None:
        worker = still.worker()
        await worker.start()
        service = service_of(worker)
        await service._subscription.cancel()  # type: ignore[union-attr]
        execution = await still.run("core.noop")
        service._intake.closed = True
        await service.look()
        [handed] = await still.database.read(hand_offs, service._worker, [execution.id])
        own = SimpleNamespace(handed=[handed], incarnation=service._worker.incarnation)
        service._intake.handed(own)  # type: ignore[arg-type]
        await service._begin([execution.id])
        assert not jobs_of(worker).holds(execution.id, 1)
        await worker.stop()
        assert (await still.execution(execution.id)).status not in {S.RUNNING, S.COMPLETED}

    async def test_what_does_not_finish_in_time_is_ended_and_given_to_others(
        self, still: World
    ) -> None:
        worker = still.worker(shutdown_timeout=0.5)
        await worker.start()
        execution = await begun(still, worker, seconds=60)
        await asyncio.wait_for(worker.stop(), 20)
        found = await still.execution(execution)
        assert found.status is S.ABANDONED
        assert (found.result or {})["abandoned_by"] == "was stopped"
        [_, stopped] = await history(still)
        assert stopped.text == "1 executions did not finish in time"

    async def test_f24_a_database_that_hangs_does_not_keep_it_from_going(
        self, still: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        worker = still.worker(shutdown_timeout=0.5)
        await worker.start()
        await begun(still, worker, seconds=60)

        async def hang(*_: Any, **__: Any) -> None:
            await asyncio.Event().wait()

        began = time.monotonic()
        with monkeypatch.context() as patched:
            for name in ("_run", "_read"):
                patched.setattr(still.database, name, hang)
            await asyncio.wait_for(worker.stop(), 20)
        assert time.monotonic() - began < 10
        await still.execute("DELETE FROM entry")


async def test_f26_a_connection_that_hangs_costs_the_heart_a_few_beats_and_no_more(
    migrated_url: str, tmp_path: Path, proxy_to: Callable[[str], FaultProxy]
) -> None:
    """The network takes everything and gives nothing back, for longer than a beat may take."""
    environ = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    proxy = proxy_to(migrated_url)
    async with World(load_settings(environ)) as world:
        part = world.worker(heartbeat_interval=0.2)
        own = part._base.settings.database.model_copy(
            update={"url": SecretStr(proxy.url_for(migrated_url))}
        )
        settings = part._base.settings.model_copy(update={"database": own})
        part._base = dataclasses.replace(part._base, settings=settings)
        await part.start()
        heartbeat = service_of(part)._heartbeat

        async def beats() -> bool:
            return heartbeat.age < 0.5

        async def misses() -> bool:
            return heartbeat.age > 2.5

        await eventually(beats)
        await asyncio.to_thread(proxy.stall)
        await eventually(misses)
        await asyncio.to_thread(proxy.heal)
        await eventually(beats)
        await asyncio.wait_for(part.stop(), 20)
        assert await events(world) == ["registered", "stopped"]


class TestHealth:
    def served(self, world: World, **settings: Any) -> WorkerPart:
        part = world.worker(**settings)
        part._base = dataclasses.replace(part._base, serves_health=True)
        return part

    async def test_health_is_answered_until_the_very_end_and_its_port_is_known(
        self, still: World
    ) -> None:
        worker = self.served(still, shutdown_timeout=20)
        await worker.start()
        address = worker.health_address
        assert address is not None
        port = await still.value(int, "SELECT port FROM worker")
        assert address.endswith(f":{port}")
        async with httpx2.AsyncClient(base_url=address) as client:
            answer = await client.get("/health")
            assert answer.status_code == 200
            assert (
                answer.json().items() >= {"status": "ok", "worker": "local", "running": 0}.items()
            )
            assert (await client.get("/other")).status_code == 404
            await begun(still, worker, seconds=1)
            assert (await client.get("/health")).json()["running"] == 1
            stopping = asyncio.create_task(worker.stop())

            async def going() -> bool:
                answer = await client.get("/health")
                return answer.status_code == 503 and "stopping" in answer.text

            await eventually(going)
            await asyncio.wait_for(stopping, 20)

    async def test_a_port_in_use_is_told_by_its_setting(self, still: World) -> None:
        first = self.served(still)
        await first.start()
        port = int((first.health_address or "").rpartition(":")[2])
        second = self.served(still, health_port=port)
        with pytest.raises(InvalidSettings, match=r"worker\.health_port") as refused:
            await second.start()
        assert os.strerror(98) in refused.value.message
        await second.stop()
        await first.stop()
