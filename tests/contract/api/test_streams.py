"""Streams: what executions do and write, as it happens."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from attune.api import (
    event_streams,
    execution_feed,
    execution_streams,
    listeners,
    log_streams,
)
from attune.api.execution_feed import ExecutionFeed, feed_queue
from attune.kernel.configuration import load_settings
from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.settings import Settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import ExecutionSummary
from attune.pipeline.executions.queries import summaries
from attune.simulation.clock import ManualClock
from attune.store.database import Tx
from attune.worker.handoffs import Chunk, keep_output
from harness.control_plane import eventually
from tests.contract.api.asgi import Client
from tests.contract.api.plant import EXECUTIONS, Plant
from tests.contract.api.streaming import Stream

STREAM = f"{EXECUTIONS}/stream"
CHANGE_KEYS = {
    "entity_type", "entity_id", "id", "action_ref", "status", "old_status", "parent", "enforcement",
    "rule_ref", "trigger_ref", "started_at", "workflow_task", "created", "updated",
}  # fmt: skip


def log_path(execution: int, name: str = "stdout") -> str:
    return f"{EXECUTIONS}/{execution}/logs/{name}/stream"


async def followed(stream: Stream) -> list[tuple[Any, Any]]:
    """Changes of a status, old and new, up to the end of an execution."""
    found: list[tuple[Any, Any]] = []
    while not found or found[-1][1] not in ("completed", "failed", "cancelled"):
        change = await stream.change()
        found.append((change["old_status"], change["status"]))
    return found


async def test_every_change_of_an_execution_is_told(plant: Plant, operator: Client) -> None:
    async with plant.open(operator, STREAM) as stream:
        assert (stream.status, stream.headers["content-type"]) == (
            200, "text/event-stream; charset=utf-8",
        )  # fmt: skip
        assert (await stream.event()).comment == "listening"
        made = await plant.order(operator, "core.echo")
        first = await stream.change()
        assert set(first) == CHANGE_KEYS
        assert (first["entity_type"], first["entity_id"]) == ("execution", made["id"])
        assert (first["old_status"], first["status"]) == (None, "requested")
        assert first["action_ref"] == "core.echo"
        rest = await followed(stream)
        assert rest[0] == ("requested", "scheduled")
        assert rest[-1][1] == "completed"


async def test_what_this_process_made_is_told_without_a_look_and_as_its_row_has_it(
    plant: Plant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[ExecutionId] = []

    async def looking(
        tx: Tx, ids: Collection[ExecutionId]
    ) -> Mapping[ExecutionId, ExecutionSummary]:
        looked.extend(ids)
        return await summaries(tx, ids)

    monkeypatch.setattr(execution_feed, "summaries", looking)
    async with plant.open(operator, STREAM) as stream:
        assert (await stream.event()).comment == "listening"
        made = await plant.order(operator, "core.echo")
        ended = await stream.change("completed")
    row = (await operator.get(f"{EXECUTIONS}/{made['id']}")).data
    shared = CHANGE_KEYS & set(row)
    assert {name: ended[name] for name in shared} == {name: row[name] for name in shared}
    assert len(shared) > 8
    assert looked == []


async def test_one_execution_can_be_followed_alone(plant: Plant, operator: Client) -> None:
    ref = await plant.inline(operator, "gate", "while [ ! -e $FILE ]; do sleep 0.02; done")
    gate = plant.settings.data_dir / "open"
    mine = await plant.order(operator, ref, env_vars={"FILE": str(gate)})
    async with plant.open(operator, STREAM, execution_id=mine["id"]) as stream:
        other = await plant.order(operator, "core.echo")
        await plant.finished(operator, other["id"])
        gate.touch()
        seen = set()
        while "completed" not in seen:
            change = await stream.change()
            assert change["id"] == mine["id"]
            seen.add(change["status"])
        await stream.leave()


async def test_a_rule_s_executions_are_told_with_what_asked_for_them(
    plant: Plant, operator: Client
) -> None:
    rule = await plant.rule()
    async with plant.open(operator, STREAM) as stream:
        await plant.emit({})
        change = await stream.change("requested")
        assert (change["rule_ref"], change["trigger_ref"]) == (rule.ref, "shop.order")
        assert change["enforcement"] is not None


async def test_only_what_the_caller_may_read_is_told(plant: Plant, operator: Client) -> None:
    sets = {"resource": "actions", "actions": ["execute"]}
    await plant.callers.permission_set("core.runner", sets)
    ann = await plant.client("ann", "core.runner")
    theirs = await plant.order(operator, "core.echo")
    async with plant.open(ann, STREAM) as stream:
        await plant.order(operator, "core.echo")
        mine = await plant.order(ann, "core.echo")
        assert (await stream.change())["id"] == mine["id"]
    assert (await ann.get(STREAM, execution_id=theirs["id"])).status == 404
    assert (await plant.callers.nobody.get(STREAM)).status == 401


async def test_the_token_of_an_execution_follows_itself_and_nothing_else(
    plant: Plant, operator: Client
) -> None:
    made = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    await plant.in_status(operator, made["id"], "running")
    program = plant.running_as(made["id"], made["executor"])
    for query in ({}, {"execution_id": made["id"] + 1}):
        assert (await program.get(STREAM, **query)).status == 403, query
    async with plant.open(program, STREAM, execution_id=made["id"]) as stream:
        await operator.post(f"{EXECUTIONS}/{made['id']}/cancel")
        assert (await stream.change("cancelled"))["id"] == made["id"]


async def test_a_client_that_does_not_take_loses_its_place_and_no_memory(
    plant: Plant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "WAITING_AT_MOST", 5)
    async with (
        plant.open(operator, STREAM) as slow,
        plant.open(operator, STREAM) as quick,
    ):
        slow.taking.clear()
        for _ in range(8):
            made = await plant.order(operator, "core.echo")
            while (await quick.change("completed"))["id"] != made["id"]:
                pass
        slow.taking.set()
        told = await slow.rest()
        assert "too slow" in told[-1].comment
        assert len(told) < 12


async def test_streams_end_when_the_server_stops_and_none_begins(
    plant: Plant, operator: Client
) -> None:
    made = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    async with (
        plant.open(operator, STREAM) as changes,
        plant.open(operator, log_path(made["id"])) as log,
    ):
        await plant.feed.stop()
        await changes.rest()
        await log.rest()
    assert (await operator.get(STREAM)).status == 503
    await operator.post(f"{EXECUTIONS}/{made['id']}/cancel")


async def test_the_queue_of_the_feed_is_there_while_somebody_listens(settings: Settings) -> None:
    clock = ManualClock()
    async with Plant(settings, through=False) as plant:
        queue = feed_queue("lingering")
        feed = ExecutionFeed(plant.database, plant.bus, clock, queue)

        async def is_there() -> bool:
            try:
                await plant.bus.depth(queue.name)
            except NotFound:
                return False
            return True

        async def is_gone() -> bool:
            return not await is_there()

        first, second = await feed.listen(), await feed.listen(ExecutionId(7))
        assert await is_there()
        feed.leave(first)
        await clock.advance(60)
        assert await is_there()
        feed.leave(second)
        feed.leave(second)
        await clock.advance(60)
        await eventually(is_gone)
        third = await feed.listen()
        assert await is_there()
        await feed.stop()
        assert third.ended
        assert await is_gone()


async def test_a_token_that_ends_ends_its_stream(
    plant: Plant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT", 0.0)
    ann = await plant.client("ann", "core.executor")
    async with plant.open(ann, STREAM) as stream:
        assert (await stream.event()).comment == "listening"
        await plant.execute("UPDATE identity SET frozen = true WHERE login = 'ann'")
        await plant.order(operator, "core.echo")
        assert (await stream.rest())[-1].comment == "the token is no longer valid"


async def test_a_silent_stream_shows_that_it_lives(
    quiet: Plant, watcher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_streams, "HEARTBEAT", 0.05)
    monkeypatch.setattr(log_streams, "HEARTBEAT", 0.05)
    made = await quiet.order(watcher, "core.echo")
    for path in (STREAM, log_path(made["id"])):
        async with quiet.open(watcher, path) as stream:
            while (await stream.event()).comment != "still here":
                pass


async def test_without_a_broker_changes_are_refused_and_output_is_still_shown(
    quiet: Plant, watcher: Client
) -> None:
    made = await quiet.order(watcher, "core.echo")
    await watcher.post(f"{EXECUTIONS}/{made['id']}/cancel")
    await quiet.announcer.stop()
    await quiet.bus.close()
    assert (await watcher.get(STREAM)).status == 503
    assert not quiet.feed.is_heard
    async with quiet.open(watcher, log_path(made["id"])) as stream:
        assert (await stream.event()).name == "done"


async def test_output_is_followed_while_it_is_written(plant: Plant, operator: Client) -> None:
    script = """
        echo one; printf 'é\\nthree' ; echo problem >&2
        while [ ! -e $FILE ]; do sleep 0.02; done
        echo; echo four
    """
    gate = plant.settings.data_dir / "open"
    ref = await plant.inline(operator, "chatty", script)
    made = await plant.order(operator, ref, env_vars={"FILE": str(gate)})
    await plant.in_status(operator, made["id"], "running")
    async with plant.open(operator, log_path(made["id"])) as stream:
        content = await stream.named("content")
        text = content.data
        assert text.startswith("one\n")
        while text != "one\né\nthree":
            piece = await stream.named("append")
            text += piece.data
            content = piece
        assert content.id == str(len(text.encode()))
        shown = await operator.get(f"{EXECUTIONS}/{made['id']}/logs/stdout")
        assert (shown.raw.decode(), shown.headers["content-type"]) == (
            text, "text/plain; charset=utf-8",
        )  # fmt: skip
        gate.touch()
        appended = await stream.named("append")
        done = await stream.named("done")
        assert (appended.data, done.data) == ("\nfour\n", "completed")
    async with Stream(
        plant.app, operator.token, log_path(made["id"]), {}, {"last-event-id": content.id}
    ) as again:
        assert (await again.event()).data == "\nfour\n"
    async with plant.open(operator, log_path(made["id"], "stderr"), offset=4) as errors:
        content, done = await errors.rest()
        assert (content.name, content.data, content.id) == ("content", "lem\n", "8")
        assert (done.name, done.id) == ("done", "8")


async def test_an_execution_that_waits_says_so_and_a_silent_one_is_done(
    quiet: Plant, watcher: Client
) -> None:
    made = await quiet.order(watcher, "core.echo")
    async with quiet.open(watcher, log_path(made["id"])) as stream:
        assert (await stream.event()).name == "waiting"
        await watcher.post(f"{EXECUTIONS}/{made['id']}/cancel")
        done = await stream.event()
        assert (done.name, done.data) == ("done", "cancelled")
        assert await stream.rest() == []


async def test_another_attempt_is_told_from_its_beginning(quiet: Plant, watcher: Client) -> None:
    made = await quiet.order(watcher, "core.echo")
    execution = ExecutionId(made["id"])

    await quiet.execute("UPDATE entry SET state = 'handed' WHERE execution = :id", id=execution)

    async def write(attempt: int, begins_at: int, text: str) -> None:
        chunk = Chunk(execution, "stdout", attempt, begins_at, text)
        await quiet.database.run(keep_output, [chunk])

    await write(1, 0, "first try\n")
    async with quiet.open(watcher, log_path(execution)) as stream:
        assert (await stream.event()).data == "first try\n"
        await quiet.execute("UPDATE execution SET attempt = 2 WHERE id = :id", id=execution)
        await quiet.execute("UPDATE entry SET attempt = 2 WHERE execution = :id", id=execution)
        await write(2, 0, "second")
        event = await stream.event()
        assert (event.name, event.data, event.id) == ("content", "second", "6")
        await write(2, 8, "after a gap")
        await write(2, 6, "\r\n")
        event = await stream.event()
        assert (event.name, event.data, event.id) == ("append", "\nafter a gap", "19")


async def test_logs_of_what_is_not_there_are_refused(quiet: Plant, watcher: Client) -> None:
    made = await quiet.order(watcher, "core.echo")
    for tail in ("", "/stream"):
        at = f"{EXECUTIONS}/{made['id']}/logs"
        assert (await watcher.get(f"{at}/stdin{tail}")).status == 422
        assert (await watcher.get(f"{at}/stdout{tail}", offset=-1)).status == 422
        assert (await watcher.get(f"{at}/stdout{tail}", offset=2**70)).status == 422
        assert (await watcher.get(f"{EXECUTIONS}/999/logs/stdout{tail}")).status == 404
        assert (await quiet.callers.nobody.get(f"{at}/stdout{tail}")).status == 401


async def test_whoever_leaves_leaves_nothing_behind(quiet: Plant, watcher: Client) -> None:
    made = await quiet.order(watcher, "core.echo")
    for path in (STREAM, log_path(made["id"])):
        async with quiet.open(watcher, path) as stream:
            await stream.event()
    assert quiet.database.topics().count("execution_output") == 0
    assert not quiet.feed.is_heard


async def test_changes_of_other_processes_come_over_the_broker(
    tmp_path: Path, postgresql_url: str, rabbitmq_url: str
) -> None:
    environ = {
        "ATTUNE__DATA_DIR": str(tmp_path),
        "ATTUNE__DATABASE__URL": postgresql_url,
        "ATTUNE__MESSAGE_QUEUE__URL": rabbitmq_url,
    }
    settings = load_settings(environ)
    async with (
        Plant(settings, through=False) as api,
        Plant(settings, through=False) as elsewhere,
    ):
        client = await api.client("admin", "core.admin")
        await elsewhere.start_worker()
        await elsewhere.start_executor()
        async with api.open(client, STREAM) as stream:
            made = await api.order(client, "core.echo", parameters={"message": "over there"})
            assert (await followed(stream))[-1][1] == ExecutionStatus.COMPLETED
        async with api.open(client, log_path(made["id"])) as log:
            assert (await log.event()).data == "over there\n"
        await asyncio.gather(api.feed.stop(), api.feed.stop())
