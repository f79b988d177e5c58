"""People are told what became of workers and executions: once, whoever tells it and whenever that was interrupted."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import jsonschema_rs
import msgspec
import pytest
import yaml

import attune.catalog
from attune.catalog.packs import PackInstaller
from attune.catalog.steps.rules import NewRule, create_rule
from attune.kernel.configuration import load_settings
from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.alerts.steps import advance
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.flow import Flow
from attune.pipeline.processors.alerts import Alerts, AlertsConfig
from attune.pipeline.workers.beats import beat, mark_lost
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.proofs import prove
from tests.contract.pipeline.world import eventually

STALE = timedelta(seconds=30)
LEASE = 300
DOCUMENT = Path(__file__).parents[3] / "docs" / "operations" / "monitoring.md"
CORE = Path(attune.catalog.__file__).parent / "core_pack"
LETTER = """
    INSERT INTO dead_letter (id, queue, reason, retry_count, body, died_at, fingerprint, created, updated)
    VALUES (:id, 'q', 'failed', 0, :body, :now, :print, :now, :now)
"""


class Crashed(Exception):
    pass


class Crashing(Flow):
    """Records the first event, and dies."""

    async def record_events(self, new: Sequence[NewEvent]) -> list[Event]:
        await super().record_events(new[:1])
        raise Crashed


class AlertBench(Bench):
    """With the core pack, whose trigger core.alert is."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        packs = self.settings.data_dir / "packs"
        await PackInstaller(self.database, self.clock, packs).install_core()
        return self

    def executor(self, name: str = "one", **config: Any) -> Alerts:
        """One that has just started."""
        flow = self.new_flow(name, through=True, stale=STALE)
        return Alerts(flow, self.clock, AlertsConfig(**config))

    def crashing(self) -> Alerts:
        executor = self.executor()
        flow = executor._flow
        executor._flow = Crashing(flow.database, flow.clock, flow.mail, flow.terms, through=True)
        return executor

    async def minute(self, *executors: Alerts) -> None:
        """A minute goes by without a heartbeat, after which each has a pass."""
        self.step(60)
        await asyncio.gather(*(one.run_once() for one in executors))

    async def told(self, failure_type: str | None = None) -> list[dict[str, Any]]:
        class Told(msgspec.Struct):
            payload: dict[str, Any]

        rows = await self.values(
            Told, "SELECT payload FROM event WHERE trigger_ref = 'core.alert' ORDER BY created, id"
        )
        return [one.payload for one in rows if failure_type in (None, one.payload["failure_type"])]

    async def correlation_ids(self, failure_type: str | None = None) -> list[str]:
        return [each["correlation_id"] for each in await self.told(failure_type)]

    async def noted(self, *happened: Happened) -> None:
        await self.database.run(note, happened)

    async def lost(self, worker: int = 1, *, ago: float = 0) -> None:
        """The row of a lost worker, written so many seconds ago."""
        at = self.clock.now() - timedelta(seconds=ago)
        await self.noted(Happened(worker=WorkerId(worker), event=WorkerEvent.LOST, at=at))

    async def hand(self) -> WorkerId:
        return WorkerId(await self.value(int, "SELECT min(id) FROM worker"))

    async def lives(self) -> None:
        """The worker's heartbeat."""
        await self.database.run(beat, await self.hand(), "x", self.clock.now())

    async def abandon(self) -> ExecutionId:
        """One that ran on a worker that was lost, and has no retry."""
        [one] = await self.ask()
        await self.start(one)
        await self.flow.take_back(LostWorker(await self.hand(), "hand", cordoned=False), "was lost")
        return one

    async def written(self) -> list[str]:
        """When the duty last wrote anything, by what."""
        return await self.values(
            str,
            "SELECT name || ' ' || updated FROM setting WHERE name LIKE 'alerts.%' ORDER BY name",
        )


@pytest.fixture(params=["sqlite", "postgresql"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AlertBench]:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path)}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("bench_url")
    async with AlertBench(load_settings(environ)) as bench:
        yield bench
        await prove(bench)


class TestIncidents:
    async def test_an_abandoned_execution_is_an_event_of_core_alert(
        self, bench: AlertBench
    ) -> None:
        one = await bench.abandon()
        await bench.executor().run_once()
        [alert] = await bench.told()
        assert alert["correlation_id"] == f"execution:{one}:worker_unavailable"
        assert (alert["severity"], alert["component_id"]) == ("error", one)
        assert alert["component_ref"] == "a.one"
        assert alert["details"]["worker"] == {"id": await bench.hand(), "name": "hand"}

    async def test_what_is_told_has_the_shape_that_the_trigger_promises(
        self, bench: AlertBench
    ) -> None:
        await bench.abandon()
        worker, now = await bench.hand(), bench.clock.now()
        await bench.noted(
            *(
                Happened(worker=worker, event=event, at=now, execution=ExecutionId(77))
                for event in WorkerEvent
            )
        )
        executor = bench.executor()
        await bench.execute("UPDATE worker SET status = 'inactive'")
        await bench.minute(executor)
        await bench.lives()
        await bench.minute(executor)
        promised = yaml.safe_load((CORE / "triggers" / "alert.yaml").read_text())["output"]
        schema = {"type": "object", "properties": promised, "required": list(promised)}
        check = jsonschema_rs.validator_for({**schema, "additionalProperties": False})
        told = await bench.told()
        for alert in told:
            check.validate(alert)
        assert {alert["failure_type"] for alert in told} == {
            "worker_unavailable",
            "worker_lost",
            "worker_unresponsive",
            "worker_set_aside",
            "execution_not_started",
            "execution_overdue",
            "no_active_workers",
        }

    async def test_a_rule_answers_an_alert_like_any_event(self, bench: AlertBench) -> None:
        """With the conditions that the documentation shows, which leave warnings out."""
        shown = re.search(r"```yaml\n(ref: on_alert\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
        assert shown
        rule = yaml.safe_load(shown[1])
        new = NewRule(
            ref="a.on_alert",
            pack_ref="a",
            label="on alert",
            trigger_ref=rule["trigger_ref"],
            action_ref="a.two",
            conditions=rule["conditions"],
            action_params={"customer": rule["action_params"]["text"]},
        )
        await bench.database.run(create_rule, new, bench.clock.now())
        one = await bench.abandon()
        worker, now = await bench.hand(), bench.clock.now()
        await bench.noted(Happened(worker=worker, event=WorkerEvent.UNRESPONSIVE, at=now))
        await bench.executor().run_once()
        assert len(await bench.told()) == 2
        [answer] = await bench.running("a.two")
        assert (
            (await bench.execution(answer))
            .config["customer"]
            .startswith(f"Execution {one} of a.one was abandoned: ")
        )

    async def test_any_number_of_executors_raise_each_once(self, bench: AlertBench) -> None:
        await bench.abandon()
        await bench.lost()
        executors = [bench.executor(f"executor {number}") for number in range(4)]
        for _ in range(2):
            await asyncio.gather(*(one.run_once() for one in executors))
        assert len(await bench.told()) == 2

    async def test_a_crash_after_the_event_and_before_the_note_of_it_raises_no_second_one(
        self, bench: AlertBench
    ) -> None:
        await bench.abandon()
        await bench.executor().run_once()
        await bench.execute("DELETE FROM setting WHERE name = 'alerts.reached'")
        await bench.executor().run_once()
        assert len(await bench.told()) == 1

    async def test_what_a_crash_kept_from_being_told_is_told_by_the_next(
        self, bench: AlertBench
    ) -> None:
        await bench.lost(1)
        await bench.lost(2)
        executor = bench.crashing()
        with pytest.raises(Crashed):
            await executor.run_once()
        assert len(await bench.told()) == 1
        await bench.executor().run_once()
        assert len(set(await bench.correlation_ids())) == len(await bench.correlation_ids()) == 2

    async def test_a_row_that_is_committed_late_is_told_although_later_ones_were(
        self, bench: AlertBench
    ) -> None:
        executor = bench.executor()
        await bench.lost(1)
        await executor.run_once()
        await bench.lost(2, ago=299)
        await executor.run_once()
        assert len(await bench.told()) == 2

    async def test_what_happened_while_no_executor_ran_is_told_however_long_ago(
        self, bench: AlertBench
    ) -> None:
        await bench.lost(1)
        await bench.executor().run_once()
        bench.step(3600)
        await bench.lost(2)
        bench.step(7 * 24 * 3600)
        await bench.executor().run_once()
        assert len(await bench.told()) == 2

    async def test_where_nothing_was_ever_told_it_begins_with_the_last_hour(
        self, bench: AlertBench
    ) -> None:
        await bench.lost(1, ago=3601)
        await bench.lost(2, ago=3599)
        await bench.executor().run_once()
        [alert] = await bench.told()
        assert alert["component_id"] == 2

    async def test_more_than_a_batch_is_told_in_several(self, bench: AlertBench) -> None:
        for worker in range(1, 8):
            await bench.lost(worker)
        executor = bench.executor(batch=3)
        await executor.run_once()
        await executor.run_once()
        assert [each["component_id"] for each in await bench.told()] == list(range(1, 8))

    async def test_while_nothing_happens_nothing_is_written(self, bench: AlertBench) -> None:
        executor = bench.executor()
        await executor.run_once()
        assert await bench.written() == []
        await bench.lost()
        await executor.run_once()
        bench.step(301)
        await bench.lives()
        await executor.run_once()
        before = await bench.written()
        assert len(before) == 1
        bench.step(10)
        await executor.run_once()
        assert await bench.written() == before

    async def test_a_wake_tells_of_a_lost_worker_at_once(self, bench: AlertBench) -> None:
        executor = bench.executor(interval=3600, look_interval=3600)
        await executor.start()
        worker = await bench.hand()
        bench.step(31)
        now = bench.clock.now()
        try:
            await bench.database.run(mark_lost, worker, now - STALE, now)

            async def told() -> list[str]:
                return await bench.correlation_ids("worker_lost")

            assert await eventually(told) == [f"worker:{worker}:lost:{now:%Y-%m-%dT%H:%M:%S.%fZ}"]
        finally:
            await executor.stop()

    async def test_the_attempts_that_the_monitors_end_are_told(self, bench: AlertBench) -> None:
        [one] = await bench.ask()
        bench.step(LEASE)
        await bench.flow.fail_unbegun()
        await bench.executor().run_once()
        [alert] = await bench.told()
        assert (alert["failure_type"], alert["component_id"]) == ("execution_not_started", one)
        assert "worker did not pick up task within timeout" in alert["summary"]


class TestConditions:
    async def test_no_active_worker_is_told_when_it_begins_and_when_it_ends_once_by_all(
        self, bench: AlertBench
    ) -> None:
        executors = [bench.executor(f"executor {number}") for number in range(3)]
        bench.step(31)
        for _ in range(3):
            await bench.minute(*executors)
        [began] = await bench.told()
        assert (began["severity"], began["failure_type"]) == ("critical", "no_active_workers")

        await bench.lives()
        for _ in range(3):
            bench.step(60)
            await bench.lives()
            await asyncio.gather(*(one.run_once() for one in executors))
        [_, ended] = await bench.told()
        assert (ended["severity"], ended["correlation_id"]) == ("info", began["correlation_id"])
        assert ended["details"]["resolved"] is True

        await bench.minute(*executors)
        [_, _, again] = await bench.told()
        assert again["severity"] == "critical"
        assert again["correlation_id"] != began["correlation_id"]

    async def test_a_cordoned_worker_is_none_that_could_run_anything(
        self, bench: AlertBench
    ) -> None:
        executor = bench.executor()
        await bench.execute("UPDATE worker SET cordoned = true")
        bench.step(60)
        await bench.lives()
        await executor.run_once()
        assert [each["failure_type"] for each in await bench.told()] == ["no_active_workers"]

    async def test_who_starts_together_with_the_executor_has_an_interval_to_come(
        self, bench: AlertBench
    ) -> None:
        bench.step(3600)
        executor = bench.executor()
        for _ in range(5):
            await executor.run_once()
            bench.step(10)
        await bench.lives()
        bench.step(10)
        await executor.run_once()
        assert await bench.told() == []

    async def test_an_installation_without_any_worker_yet_is_left_in_peace(
        self, bench: AlertBench
    ) -> None:
        await bench.execute("DELETE FROM worker")
        await bench.execute("DELETE FROM worker_history")
        await bench.minute(bench.executor())
        assert await bench.told() == []

    async def test_a_crash_between_the_decision_and_the_event_loses_nothing_and_doubles_nothing(
        self, bench: AlertBench
    ) -> None:
        executor = bench.executor()
        bench.step(60)
        await bench.database.run(advance, STALE, bench.clock.now())
        assert await bench.told() == []
        await executor.run_once()
        assert len(await bench.told()) == 1

        bench.step(60)
        await bench.lives()
        await bench.database.run(advance, STALE, bench.clock.now())
        await bench.execute("UPDATE worker SET status = 'inactive'")
        await executor.run_once()
        assert [each["severity"] for each in await bench.told()] == ["critical", "info"]
        await bench.minute(executor)
        assert [each["severity"] for each in await bench.told()] == ["critical", "info", "critical"]

    async def test_a_look_that_failed_is_due_again_at_the_next_pass_and_not_before(
        self, bench: AlertBench
    ) -> None:
        executor = bench.crashing()
        bench.step(60)
        with pytest.raises(Crashed):
            await executor.run_once()
        assert executor.until_next() == executor.config.interval
        executor._flow = bench.executor()._flow
        await executor.run_once()
        [alert] = await bench.told()
        assert alert["failure_type"] == "no_active_workers"
        assert 0 < executor.until_next() <= executor.config.interval

    async def test_more_than_ten_timeouts_a_minute_are_told_and_ten_are_not(
        self, bench: AlertBench
    ) -> None:
        executor = bench.executor()
        for count, expected in ((10, 0), (11, 1), (0, 2)):
            ids = await bench.ask(count=count) if count else []
            bench.step(LEASE)
            await bench.lives()
            assert await bench.flow.fail_unbegun() == len(ids)
            await executor.run_once()
            assert len(await bench.told("high_execution_timeout_rate")) == expected
        assert (await bench.told("high_execution_timeout_rate"))[0]["details"]["value"] == 11

    async def test_what_stays_scheduled_for_five_minutes_is_told_until_it_is_begun(
        self, bench: AlertBench
    ) -> None:
        executor = bench.executor()
        [one] = await bench.ask()
        for seconds, expected in ((299, 0), (1, 0), (60, 1)):
            bench.step(seconds)
            await bench.lives()
            await executor.run_once()
            assert len(await bench.told("stale_executions")) == expected
        await bench.start(one)
        bench.step(60)
        await bench.lives()
        await executor.run_once()
        assert [each["severity"] for each in await bench.told("stale_executions")] == [
            "warning",
            "info",
        ]

    async def test_more_than_a_hundred_dead_letters_are_told_until_they_are_replayed(
        self, bench: AlertBench
    ) -> None:
        async def die(tx: Tx, numbers: range) -> None:
            for number in numbers:
                values = {"id": number, "print": str(number), "body": b"{}"}
                await tx.execute(LETTER, now=bench.clock.now(), **values)

        executor = bench.executor()
        for letters, expected in ((range(1, 101), 0), (range(101, 102), 1)):
            await bench.database.run(die, letters)
            bench.step(60)
            await bench.lives()
            await executor.run_once()
            assert len(await bench.told("dlq_buildup")) == expected
        await bench.execute("UPDATE dead_letter SET replayed_at = :now", now=bench.clock.now())
        bench.step(60)
        await bench.lives()
        await executor.run_once()
        assert [each["severity"] for each in await bench.told("dlq_buildup")] == ["warning", "info"]

    async def test_while_all_is_well_nothing_is_written(self, bench: AlertBench) -> None:
        executor = bench.executor()
        for _ in range(3):
            bench.step(60)
            await bench.lives()
            await executor.run_once()
        assert await bench.written() == []
