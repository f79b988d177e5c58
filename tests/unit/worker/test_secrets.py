"""F41: what is delivered to an action is seen by nobody but the action."""

import asyncio
from pathlib import Path

import pytest
import structlog

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Delivery, Runtime
from attune.worker.proc import children
from tests.unit.worker.worlds import World

SECRET = "hunter2-very-secret"


def seen_from_outside(pid: int) -> bytes:
    """What the process list shows of a process and of its children."""
    shown = b""
    for each in (pid, *children(pid)):
        shown += (
            Path(f"/proc/{each}/cmdline").read_bytes() + Path(f"/proc/{each}/environ").read_bytes()
        )
    return shown


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("inline", [True, False])
async def test_f41_secrets_are_in_neither_the_command_line_nor_the_environment(
    world: World, inline: bool, delivery: Delivery
) -> None:
    script = "echo pid $$.; sleep 1000; echo $password"
    running = world.start(
        script if inline else world.file("a.sh", script),
        inline=inline,
        parameters={"password": SECRET},
        secrets={"token": SECRET},
        parameter_delivery=delivery,
    )
    (pid,) = await world.ear.hears_pids(1)
    assert SECRET.encode() not in seen_from_outside(pid)
    assert b"ENGINE_SECRET" not in seen_from_outside(pid)
    if delivery is Delivery.STDIN:
        on_disk = [file.read_text() for file in world.work.rglob("*") if file.is_file()]
        assert SECRET not in "".join(on_disk)
    world.cancel.set()
    assert (await running).status is ExecutionStatus.CANCELLED
    assert world.leftovers() == []


async def test_f41_a_run_s_private_folder_is_closed_to_others(world: World) -> None:
    running = world.start("echo ready; sleep 1000")
    await world.ear.hears("ready")
    folders = list(world.work.iterdir())
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o400}
    world.cancel.set()
    await running


def test_f41_a_run_shows_no_secret_when_it_is_printed(world_sync: World) -> None:
    run = world_sync.make(parameters={"p": SECRET}, secrets={"k": SECRET}, api_token=SECRET)
    assert SECRET not in f"{run} {run!r}"


async def test_f41_a_fault_of_ours_shows_no_secret(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("attune.worker.process.Child", fails)
    with structlog.testing.capture_logs() as logs:
        outcome = await world.run("echo", parameters={"p": SECRET})
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.error == "Attune failed to run the action (RuntimeError)."
    assert [line["event"] for line in logs] == ["An action could not be run."]
    assert world.leftovers() == []


@pytest.fixture
def world_sync(tmp_path: Path) -> World:
    async def make() -> World:
        return World(tmp_path)

    return asyncio.run(make())


async def test_f41_bodies_and_credentials_are_not_in_the_errors_of_http_request(
    world: World,
) -> None:
    outcome = await world.run(
        ref="core.http_request",
        runtime=Runtime.NATIVE,
        inline=False,
        parameters={
            "url": f"http://user:{SECRET}@127.0.0.1:1/",
            "headers": {"X-Key": f"{SECRET}\n"},
            "body": SECRET,
            "auth_type": "bearer",
            "auth_token": SECRET,
        },
    )
    assert outcome.status is ExecutionStatus.FAILED
    assert SECRET not in str(outcome.result)
