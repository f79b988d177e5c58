"""Processes that stay: quick, and as blind to the run before as a fresh start."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attune.catalog.retrying import Limits
from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Delivery, OutputFormat
from attune.worker.proc import look
from attune.worker.warm.pool import Pool
from attune.worker.warm.reuse import Reuse
from tests.unit.worker.scripts import Mode, fields_of, run_script, until
from tests.unit.worker.worlds import World, alive

PID = "import os; print(os.getpid())"


async def pid_of_a_run(world: World, text: str = PID, **fields: Any) -> int:
    outcome = await run_script(world, Mode.REUSE, text, **fields)
    assert outcome.status is ExecutionStatus.COMPLETED, outcome
    return int(outcome.result.stdout.split()[0])


def is_stopped(pid: int) -> bool:
    process = look(pid)
    return process is not None and process.stopped


def pool_of(world: World) -> Pool:
    reuse: Reuse = world.runner._reuse
    return reuse.pool


async def test_executions_of_an_action_share_a_process(world: World) -> None:
    pids = {await pid_of_a_run(world, execution_id=number) for number in range(1, 6)}
    assert len(pids) == 1


async def test_an_action_that_did_not_ask_for_it_shares_none(world: World) -> None:
    outcomes = [await run_script(world, Mode.ISOLATED, PID) for _ in range(3)]
    assert len({outcome.result.stdout for outcome in outcomes}) == 3


async def test_another_action_has_another_process(world: World) -> None:
    assert await pid_of_a_run(world) != await pid_of_a_run(world, ref="mypack.other")


async def test_as_many_stay_as_ran_at_once_and_each_runs_one_at_a_time(world: World) -> None:
    name = world.file(
        "s.py", "import os, sys, time\nprint(os.getpid(), sys.stdin.readline())\ntime.sleep(0.02)\n"
    )
    fields = [fields_of(Mode.REUSE, parameters={"n": number}) for number in range(30)]
    outcomes = await asyncio.gather(*(world.run(name, **each) for each in fields[:3]))
    pids = {outcome.result.stdout.split()[0] for outcome in outcomes}
    assert len(pids) == pool_of(world).idle == 3
    outcomes = await asyncio.gather(*(world.run(name, **each) for each in fields))
    words = [outcome.result.stdout.split() for outcome in outcomes]
    assert [word for _, word in words] == [f'{{"n":{number}}}' for number in range(30)]
    assert {pid for pid, _ in words} > pids


@pytest.mark.parametrize("code", ["pass", "import sys; sys.exit(3)", "1 / 0", "import json"])
async def test_whatever_exit_code_it_has_a_run_that_leaves_nothing_keeps_its_process(
    world: World, code: str
) -> None:
    text = f"import os\nprint(os.getpid())\n{code}\n"
    outcomes = [await run_script(world, Mode.REUSE, text) for _ in range(2)]
    assert outcomes[0].result.stdout == outcomes[1].result.stdout


@pytest.mark.parametrize(
    "code",
    {
        "a thread": "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
        "a child": "subprocess.Popen(['sleep', '1000'], stdout=subprocess.DEVNULL)",
        "a grandchild": "os.system('sleep 1000 &')",
        "a body": "os.posix_spawnp('true', ['true'], {})",
        "a daemon": "os.system('setsid sleep 1000 > /dev/null 2>&1 &')",
        "an open file": "keep = sys.keep = open('/dev/null')",
        "a closed output": "os.close(1)",
        "an output that leads elsewhere": "os.dup2(os.open('/dev/null', 1), 2)",
        "an output that does not wait": "os.set_blocking(1, False)",
        "a closed link": "os.closerange(3, 100)",
        "a signal's handler": "signal.signal(signal.SIGUSR1, print)",
        "a signal that is held back": "signal.pthread_sigmask(0, [signal.SIGUSR1])",
        "an alarm": "signal.alarm(1000)",
        "a mask": "os.umask(0)",
        "a limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))",
        "work at exit": "atexit.register(print, 'bye')",
        "another priority": "os.nice(1)",
    }.items(),
    ids=lambda item: item[0],
)
async def test_whoever_leaves_something_behind_has_the_process_for_the_last_time(
    world: World, code: tuple[str, str]
) -> None:
    text = (
        "import atexit, os, resource, signal, subprocess, sys, threading, time\n"
        "print(os.getpid(), flush=True)\nif os.path.exists('leave'):\n    os.unlink('leave')\n"
        f"    {code[1]}\n"
    )
    first = await pid_of_a_run(world, text)
    assert await pid_of_a_run(world, text) == first
    (world.pack / "leave").write_text("")
    assert await pid_of_a_run(world, text) == first
    after = await run_script(world, Mode.REUSE, text)
    assert after.result.stdout not in ("", f"{first}\n")
    assert after.result.stderr == ""
    await until(lambda: look(first) is None)


async def test_nothing_of_one_run_is_found_by_the_next(world: World) -> None:
    spoil = (
        "import builtins, logging, os, random, socket, sys, time, warnings\n"
        "builtins.spoilt = 1\nx = 1\nos.environ['SPOILT'] = '1'\nos.putenv('SPOILT2', '1')\n"
        "os.chdir('/')\nsys.path.insert(0, '/spoilt')\nsys.argv.append('spoilt')\n"
        "sys.stdout = sys.stderr = None\nsys.excepthook = print\nsys.setrecursionlimit(5000)\n"
        "warnings.simplefilter('error')\nlogging.basicConfig(level='DEBUG')\n"
        "socket.setdefaulttimeout(1)\nrandom.seed(1)\nsys.stdin.readline()\n"
        "sys.meta_path.append(1)\nsys.settrace(lambda *a: None)\nsys.dont_write_bytecode = True\n"
        "os.putenv('HOME', '/spoilt')\nos.unsetenv('PATH')\nos.environ['TZ'] = 'Asia/Tokyo'\n"
        "time.tzset()\nos.environ = {}\nsys.__stdout__ = None\n"
    )
    look_around = (
        "import builtins, logging, os, random, socket, sys, time, warnings\n"
        "os.system('echo \"$HOME $PATH $TZ\"')\nprint(time.tzname, sys.__stdout__ is sys.stdout)\n"
        "print(hasattr(builtins, 'spoilt'), 'x' in globals(), 'SPOILT' in os.environ,\n"
        "      os.system('test -z \"$SPOILT$SPOILT2\"'), os.getcwd(), '/spoilt' in sys.path,\n"
        "      len(sys.argv), sys.excepthook is sys.__excepthook__, sys.getrecursionlimit(),\n"
        "      logging.root.handlers, logging.root.level, socket.getdefaulttimeout(),\n"
        "      len(sys.stdin.read()), 1 in sys.meta_path, sys.gettrace(), sys.dont_write_bytecode)\n"
        "warnings.warn('not an error')\nprint(random.random(), file=sys.stderr)\n"
    )
    text = (
        "import os, sys\nsys.stderr.write(f'{os.getpid()}\\n')\n"
        f"exec({spoil!r} if os.path.exists('spoil') else {look_around!r})\n"
    )
    clean = await run_script(world, Mode.REUSE, text)
    (world.pack / "spoil").write_text("")
    spoiling = await run_script(world, Mode.REUSE, text)
    (world.pack / "spoil").unlink()
    after = await run_script(world, Mode.REUSE, text)
    assert spoiling.status is ExecutionStatus.COMPLETED, spoiling.result.stderr
    assert len({run.result.stderr.split()[0] for run in (clean, spoiling, after)}) == 1
    assert after.result.stdout == clean.result.stdout
    assert "not an error" in after.result.stderr
    assert after.result.stderr != clean.result.stderr


async def test_what_a_run_left_in_the_interpreter_has_its_last_words_in_that_run(
    world: World,
) -> None:
    text = (
        "import builtins, os\n"
        "class Last:\n    def __del__(self, os=os): os.write(1, b'%d last' % os.getpid())\n"
        "builtins.last = Last()\n"
    )
    outcomes = [(await run_script(world, Mode.REUSE, text)).result.stdout for _ in range(2)]
    assert outcomes[0].endswith(" last")
    assert outcomes[0] == outcomes[1]


async def test_an_action_that_always_leaves_something_still_runs_each_time(world: World) -> None:
    text = "import os, sys\nprint(os.getpid())\nos.umask(0)\nsys.exit(3)\n"
    outcomes = [await run_script(world, Mode.REUSE, text) for _ in range(20)]
    assert {outcome.result.exit_code for outcome in outcomes} == {3}
    assert len({outcome.result.stdout for outcome in outcomes}) == 20


async def test_a_process_that_dies_before_it_heard_of_a_run_costs_the_run_nothing(
    world: World,
) -> None:
    pid = await pid_of_a_run(world)
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: is_stopped(pid))
    running = world.start("script.py", **fields_of(Mode.REUSE))
    await until(lambda: pool_of(world).idle == 0)
    os.kill(pid, signal.SIGKILL)
    outcome = await running
    assert outcome.status is ExecutionStatus.COMPLETED
    assert outcome.result.stdout not in ("", f"{pid}\n")


async def test_parameters_of_any_size_are_delivered(world: World) -> None:
    text = "import json, os, sys\nprint(os.getpid(), len(json.load(sys.stdin)['a']))\n"
    sizes = [10, 200_000, 20, 3_000_000, 0]
    words = [
        (await run_script(world, Mode.REUSE, text, parameters={"a": "x" * size})).result.stdout
        for size in sizes
    ]
    assert [int(each.split()[1]) for each in words] == sizes
    assert len({each.split()[0] for each in words}) == 1


async def test_more_output_than_a_pipe_holds_does_not_hold_a_short_run(world: World) -> None:
    text = "import sys\nsys.stdout.write('x' * 300_000)\nsys.stderr.write('y' * 300_000)\n"
    for _ in range(3):
        result = (await run_script(world, Mode.REUSE, text)).result
        assert (result.stdout, result.stderr) == ("x" * 300_000, "y" * 300_000)


LOOK_AT_DESCRIPTORS = """
import os, socket, sys
from attune.worker.warm.inside.condition import Condition
ours, theirs = socket.socketpair()
theirs.close()
condition = Condition(ours.fileno())
for counted in (condition._is_counted, False):
    condition._is_counted = counted
    print(condition.is_whole(), end=" ")
    with open(os.devnull):
        print(condition.is_whole(), end=" ")
"""


def test_an_open_file_is_seen_whether_or_not_the_kernel_counts_descriptors() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOOK_AT_DESCRIPTORS], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["True", "False"] * 2


async def test_modules_that_a_run_imported_stay(world: World) -> None:
    world.file("neighbour.py", "print('loaded')\nCALLS = []\n")
    text = "import neighbour\nneighbour.CALLS.append(1)\nprint(len(neighbour.CALLS))"
    outcomes = [(await run_script(world, Mode.REUSE, text)).result.stdout for _ in range(2)]
    assert outcomes == ["loaded\n1\n", "2\n"]


async def test_output_is_never_told_to_the_next_run(world: World) -> None:
    text = (
        "import os, sys\nn = int(sys.stdin.readline().split(':')[1].strip('}\\n'))\n"
        "os.write(1, b'%d\\n' % n * 20000)\nsys.stderr.write('%d\\n' % n * 20000)\n"
        "sys.stdout.write('%d' % n)\n"
    )
    for number in range(20):
        outcome = await run_script(world, Mode.REUSE, text, parameters={"n": number})
        assert set(outcome.result.stdout.split()) == {str(number)}
        assert set(outcome.result.stderr.split()) == {str(number)}
        assert len(outcome.result.stdout.split()) == 20001
    assert pool_of(world).idle == 1


@pytest.mark.parametrize("change", ["script", "neighbour", "removed and made anew"])
async def test_a_changed_file_of_the_pack_is_read_anew(world: World, change: str) -> None:
    world.file("neighbour.py", "NAME = 'old'\n")
    name = world.file("s.py", "import neighbour\nprint('old', neighbour.NAME)\n")

    async def output() -> str:
        return (await world.run(name, **fields_of(Mode.REUSE))).result.stdout

    assert await output() == "old old\n"
    if change == "neighbour":
        world.file("neighbour.py", "NAME = 'new, and longer'\n")
        assert await output() == "old new, and longer\n"
    else:
        if change.startswith("removed"):
            (world.pack / "actions" / "s.py").unlink()
            outcome = await world.run(name, **fields_of(Mode.REUSE))
            assert "names no file" in str(outcome.result.error)
        world.file("s.py", "import neighbour\nprint('new', neighbour.NAME)\n")
        assert await output() == "new old\n"


async def test_those_that_wait_for_an_action_as_it_was_end(world: World, tmp_path: Path) -> None:
    first = await pid_of_a_run(world)
    other = tmp_path / "other"
    (other / "actions").mkdir(parents=True)
    (other / "actions" / "script.py").write_text(PID)
    second = await pid_of_a_run(world, pack_dir=other)
    assert second != first
    await until(lambda: look(first) is None)
    assert alive(second)


async def test_one_that_waits_too_long_ends(world: World) -> None:
    pool_of(world)._idle_seconds = 0.05
    pid = await pid_of_a_run(world)
    await until(lambda: look(pid) is None)
    assert pool_of(world).idle == 0
    assert await pid_of_a_run(world) != pid


async def test_one_that_was_killed_while_it_waited_is_replaced(world: World) -> None:
    pid = await pid_of_a_run(world)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: look(pid) is None or not alive(pid))
    assert await pid_of_a_run(world) != pid
    await until(lambda: look(pid) is None)


async def test_a_cancelled_run_costs_its_process(world: World) -> None:
    name = world.file("s.py", "import os, time\nprint(f'pid {os.getpid()}.')\ntime.sleep(1000)")
    running = world.start(name, **fields_of(Mode.REUSE))
    (pid,) = await world.ear.hears_pids(1)
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED
    assert outcome.result.exit_code == 128 + signal.SIGTERM
    await until(lambda: look(pid) is None)
    world.cancel.clear()
    assert await pid_of_a_run(world) != pid


async def test_an_action_with_limits_on_what_a_process_uses_has_processes_of_its_own(
    world: World,
) -> None:
    limits = Limits(cpu_seconds=10, open_files=99)
    assert await pid_of_a_run(world, limits=limits) != await pid_of_a_run(world, limits=limits)
    few = Limits(output_mb=0.001)
    text = "import os\nprint(os.getpid(), 'x' * 5000)\n"
    outcomes = [await run_script(world, Mode.REUSE, text, limits=few) for _ in range(2)]
    assert outcomes[0].result.stdout == outcomes[1].result.stdout
    assert "was cut" in outcomes[0].result.stdout


async def test_parameters_in_a_file_are_the_run_s_alone(world: World) -> None:
    text = (
        "import json, os\nfile = os.environ['ATTUNE_PARAMETERS_FILE']\n"
        "print(os.getpid(), json.load(open(file))['n'], oct(os.stat(file).st_mode & 0o777))\n"
    )
    fields: dict[str, Any] = {"parameter_delivery": Delivery.FILE}
    shown = [
        (await run_script(world, Mode.REUSE, text, **fields, parameters={"n": n})).result.stdout
        for n in (1, 2)
    ]
    assert [line.split()[1:] for line in shown] == [["1", "0o400"], ["2", "0o400"]]
    assert len({line.split()[0] for line in shown}) == 1
    assert world.leftovers() == []


async def test_without_such_a_file_no_folder_is_made(world: World) -> None:
    await pid_of_a_run(world)
    assert not world.work.exists()


async def test_output_is_read_as_data(world: World) -> None:
    outcome = await run_script(
        world, Mode.REUSE, "print('{\"a\": [1]}')", output_format=OutputFormat.JSON
    )
    assert outcome.result.data == {"a": [1]}
