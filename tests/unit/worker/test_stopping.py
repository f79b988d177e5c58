"""However a run ends, its processes end with it."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import uvloop

from attune.kernel.statuses import ExecutionStatus
from attune.simulation.clock import ManualClock
from attune.worker.descendants import Descendants, Lineage
from attune.worker.limits import until_ended
from attune.worker.model import Stop
from attune.worker.proc import Identity, Process, children, look
from tests.unit.worker.worlds import (
    PATIENCE,
    World,
    alive,
    survivors,
    until_dead,
    until_none_survives,
)

# A family that does all it can to survive: in the group, in a group of its own, in a session of its own,
# there without a parent, there without the run's mark, and the first process itself.
FAMILY = """
bash stubborn.sh &
setsid bash stubborn.sh &
(setsid bash stubborn.sh &)
env -i PATH="$PATH" setsid bash stubborn.sh &
set -m
bash stubborn.sh &
set +m
. ./stubborn.sh
"""
FAMILY_SIZE = 6


async def test_f23_a_cancel_before_the_start_starts_nothing(world: World) -> None:
    world.cancel.set()
    outcome = await world.run(f"touch {world.pack}/touched")
    assert outcome.status is ExecutionStatus.CANCELLED
    assert outcome.started_at is None
    assert outcome.result.exit_code is None
    assert not (world.pack / "touched").exists()


async def test_f23_a_cancel_ends_children_that_ignore_term_leave_the_session_or_lose_their_parent(
    world: World,
) -> None:
    running = world.start(FAMILY)
    pids = await world.ear.hears_pids(FAMILY_SIZE)
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED
    assert outcome.result.exit_code == 128 + signal.SIGKILL
    assert [pid for pid in pids if alive(pid)] == survivors(world.execution_id) == []
    assert children(os.getpid()).isdisjoint(pids)


async def test_f23_a_cancel_during_the_start_is_not_lost(world: World) -> None:
    running = world.start("echo started; sleep 1000")
    await asyncio.sleep(0)
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED


async def test_f23_a_cancel_after_the_end_leaves_the_outcome(world: World) -> None:
    outcome = await world.run("echo done")
    world.cancel.set()
    assert outcome.status is ExecutionStatus.COMPLETED


async def test_an_action_may_clean_up_when_it_is_told_to_stop(tmp_path: Path) -> None:
    world = World(tmp_path, grace=PATIENCE)
    running = world.start(
        "trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    )
    await world.ear.hears("ready")
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED
    assert outcome.result.exit_code == 3
    assert "cleaned" in outcome.result.stdout


async def test_a_child_without_a_mark_is_not_lost_when_its_parent_goes_first(world: World) -> None:
    running = world.start('env -i PATH="$PATH" setsid bash stubborn.sh & wait')
    (pid,) = await world.ear.hears_pids(1)
    world.cancel.set()
    outcome = await running
    assert outcome.result.exit_code == 128 + signal.SIGTERM
    assert not alive(pid)


async def test_a_child_that_flees_when_it_is_told_to_stop_is_not_lost(world: World) -> None:
    (world.pack / "flees.sh").write_text(
        """trap 'exec setsid bash stubborn.sh' TERM; echo "pid $$."; while :; do sleep 0.01; done"""
    )
    running = world.start('env -i PATH="$PATH" bash flees.sh & wait')
    (pid,) = await world.ear.hears_pids(1)
    world.cancel.set()
    await running
    assert not alive(pid)


def test_an_orphan_belongs_to_the_run_whose_sessions_it_is_in() -> None:
    def process(number: int, session: int) -> Process:
        return Process(Identity(2**30 + number, 0), "S", 2**30 + number, 2**30 + session)

    lineage = Lineage(2**30, b"ATTUNE_EXEC_ID=1")
    assert lineage.has(process(1, session=0))
    assert not lineage.has(process(2, session=9))
    lineage.see([process(9, session=9)])
    assert lineage.has(process(2, session=9))


async def test_a_stopped_process_hears_term_too(tmp_path: Path) -> None:
    world = World(tmp_path, grace=PATIENCE)
    running = world.start("echo pid $$.; kill -STOP $$; sleep 1000")
    (pid,) = await world.ear.hears_pids(1)
    while (process := look(pid)) and not process.stopped:
        await asyncio.sleep(0.001)
    world.cancel.set()
    outcome = await running
    assert outcome.result.exit_code == 128 + signal.SIGTERM


async def test_a_time_limit_kills_the_whole_family_and_says_so(tmp_path: Path) -> None:
    clock = ManualClock()
    world = World(tmp_path, clock=clock)
    running = world.start(FAMILY, timeout_seconds=60)
    await world.ear.hears_pids(FAMILY_SIZE)
    await clock.advance(60)
    while not running.done():
        await clock.advance(0.1)
        await asyncio.sleep(0.001)
    outcome = await running
    assert outcome.status is ExecutionStatus.TIMEOUT
    assert "timed out" in str(outcome.result.error)
    assert survivors(world.execution_id) == []


async def test_a_time_limit_is_measured_by_the_clock_it_was_given(tmp_path: Path) -> None:
    clock = ManualClock()
    world = World(tmp_path, clock=clock)
    running = world.start("echo ready; sleep 1000", timeout_seconds=3600)
    await world.ear.hears("ready")
    await clock.advance(3599)
    assert not running.done()
    await clock.advance(2)
    outcome = await running
    assert outcome.status is ExecutionStatus.TIMEOUT
    assert outcome.result.duration_ms >= 3_600_000


async def test_what_a_finished_action_leaves_in_its_session_is_killed(world: World) -> None:
    os.mkfifo(world.pack / "fifo")
    running = world.start("set -m; bash stubborn.sh & set +m; bash stubborn.sh & read -r _ < fifo")
    await world.ear.hears_pids(2)
    await asyncio.to_thread((world.pack / "fifo").write_text, "go\n")
    outcome = await running
    assert outcome.status is ExecutionStatus.COMPLETED
    assert survivors(world.execution_id) == []


async def test_a_daemon_that_keeps_standard_output_open_does_not_hold_the_run(world: World) -> None:
    os.mkfifo(world.pack / "fifo")
    outcome = await world.run(
        "setsid bash -c 'echo pid $$.; echo > fifo; exec sleep 1000' & read -r _ < fifo; echo last"
    )
    (pid,) = await world.ear.hears_pids(1)
    try:
        assert outcome.status is ExecutionStatus.COMPLETED
        assert outcome.result.stdout.endswith("last\n")
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_a_daemon_that_writes_for_ever_does_not_hold_the_run(world: World) -> None:
    os.mkfifo(world.pack / "fifo")
    outcome = await world.run("setsid bash -c 'echo > fifo; exec yes' & read -r _ < fifo")
    assert outcome.status is ExecutionStatus.COMPLETED
    # Its output has nowhere to go any more, which ends it.
    await until_none_survives(world.execution_id)


async def test_a_run_whose_task_is_cancelled_leaves_no_process(world: World) -> None:
    running = world.start(FAMILY)
    pids = await world.ear.hears_pids(FAMILY_SIZE)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    await until_none_survives(world.execution_id)
    await until_dead(pids)
    assert world.leftovers() == []


async def test_one_run_s_end_spares_the_others(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    staying = other.start("(setsid bash stubborn.sh &) ; sleep 1000")
    (pid,) = await other.ear.hears_pids(1)
    running = world.start("echo ready; sleep 1000")
    await world.ear.hears("ready")
    world.cancel.set()
    await running
    assert alive(pid)
    other.cancel.set()
    assert (await staying).status is ExecutionStatus.CANCELLED


async def test_orphans_that_end_by_themselves_are_reaped_when_nobody_claims_them(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    descendants = Descendants(clock)
    # A child that waits to be reaped, in a session of its own, as an orphan's body does.
    pid = os.posix_spawn("/bin/true", ["true"], {}, setsid=True)
    async with asyncio.timeout(PATIENCE):
        while alive(pid):
            await asyncio.sleep(0.001)
    descendants.sweep()
    assert pid in children(os.getpid())
    await clock.advance(10)
    descendants.sweep()
    assert pid not in children(os.getpid())


async def test_an_end_wins_over_a_cancel_of_the_same_moment() -> None:
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ended.set_result(None)
    cancel = asyncio.Event()
    cancel.set()
    assert await until_ended(ended, cancel=cancel, clock=ManualClock(), timeout=0) is None


async def test_a_limit_counts_from_the_beginning_even_of_what_nobody_watches_yet() -> None:
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    clock, cancel = ManualClock(), asyncio.Event()
    waiting = asyncio.create_task(until_ended(ended, cancel=cancel, clock=clock, timeout=60))
    await asyncio.sleep(0)
    await clock.advance(60)
    async with asyncio.timeout(PATIENCE):
        assert await waiting is Stop.TIMEOUT


async def test_only_what_lasts_is_watched() -> None:
    loop = asyncio.get_running_loop()
    short, long = loop.create_future(), loop.create_future()
    loop.call_soon(short.set_result, None)
    watched: list[asyncio.Future[None]] = []

    def watch(ended: asyncio.Future[None]) -> None:
        watched.append(ended)
        ended.set_result(None)

    for ended in (short, long):
        stop = await until_ended(
            ended,
            cancel=asyncio.Event(),
            clock=ManualClock(),
            timeout=1,
            lasts=partial(watch, ended),
        )
        assert stop is None
    assert watched == [long]


def test_it_works_on_the_loop_that_the_processes_of_attune_use(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        running = world.start(FAMILY)
        await world.ear.hears_pids(FAMILY_SIZE)
        world.cancel.set()
        assert (await running).status is ExecutionStatus.CANCELLED
        assert survivors(world.execution_id) == []

    uvloop.run(scenario())
