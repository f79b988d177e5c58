"""Warm interpreters: what they fork is alone, ends whatever it does, and outlives them."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from attune.catalog.retrying import Limits
from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Outcome, Runtime
from attune.worker.proc import Identity, children, look
from harness.waiting import wait_until
from tests.unit.worker.scripts import INTERPRETER, Mode, fields_of, run_script, until
from tests.unit.worker.worlds import World, alive, survivors, until_none_survives

PARENT = "import os; print(os.getppid())"
FAMILY = r"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
STUBBORN = ["bash", "stubborn.sh"]
subprocess.Popen(STUBBORN)
subprocess.Popen(STUBBORN, start_new_session=True)
subprocess.run(["sh", "-c", "setsid bash stubborn.sh & exit 0"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b"pid %d.\n" % os.getpid())
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""
FAMILY_SIZE = 4


def isolated(**fields: Any) -> dict[str, Any]:
    return fields_of(Mode.ISOLATED, **fields)


async def parent_of_a_run(world: World, mode: Mode = Mode.ISOLATED, **fields: Any) -> int:
    outcome = await run_script(world, mode, PARENT, **fields)
    assert outcome.status is ExecutionStatus.COMPLETED, outcome
    return int(outcome.result.stdout)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def bodies() -> set[Identity]:
    """Processes of ours that have ended and that nobody has reaped."""
    found = filter(None, map(look, children(os.getpid())))
    return {process.identity for process in found if not process.lives}


async def test_runs_are_forked_from_one_interpreter_that_is_no_worker(world: World) -> None:
    parents = {await parent_of_a_run(world) for _ in range(3)}
    assert parents < children(os.getpid())
    assert await parent_of_a_run(world, Mode.PLAIN) == os.getpid()


@pytest.mark.parametrize(
    "fields",
    [
        {"env_vars": {"PYTHONPATH": "/tmp"}},
        {"env_vars": {"PYTHONUTF8": "1"}},
        {"env_vars": {"LD_LIBRARY_PATH": "/tmp"}},
        {"interpreter": (*INTERPRETER, "-O")},
    ],
)
async def test_what_an_interpreter_heeds_at_its_start_gets_a_start_of_its_own(
    world: World, fields: dict[str, Any]
) -> None:
    assert await parent_of_a_run(world, **fields) == os.getpid()


async def test_variables_that_change_no_start_do_not_cost_one(world: World) -> None:
    first = await parent_of_a_run(world)
    variables = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "OTHER": "x"}
    assert await parent_of_a_run(world, env_vars=variables) == first
    world.file("neighbour.py", "")
    await run_script(world, Mode.ISOLATED, "import neighbour", env_vars=variables)
    assert not list(world.pack.rglob("__pycache__"))


async def test_each_language_has_an_interpreter_that_started_with_it(world: World) -> None:
    text = "import os, sys; print(os.getppid(), sys.getfilesystemencoding(), sys.stdout.errors)"
    seen = {
        language: (
            await run_script(
                world,
                Mode.ISOLATED,
                text,
                env_vars={"LC_ALL": language, "LANG": "", "PYTHONUNBUFFERED": "1"},
            )
        ).result.stdout.split()
        for language in ("C.UTF-8", "POSIX", "en_US.ISO-8859-1")
    }
    assert len({parent for parent, *_ in seen.values()}) == 3


def installed() -> dict[str, tuple[int, int]]:
    """The interpreters on the PATH, and beside this one, that work, with their versions."""
    text = "import sys; print(sys.executable); print('%d %d' % sys.version_info[:2])"
    found = {sys.executable: sys.version_info[:2]}
    beside = map(str, Path(sys.base_prefix).parent.glob("*/bin/python3"))
    named = filter(shutil.which, [f"python3.{minor}" for minor in range(5, 20)])
    for name in (*beside, *named):
        shown = subprocess.run([name, "-c", text], capture_output=True, text=True, check=False)
        if shown.returncode == 0:
            program, major, minor = shown.stdout.split()
            found[program] = int(major), int(minor)
    return found


@pytest.mark.parametrize("mode", [Mode.ISOLATED, Mode.REUSE])
async def test_every_version_of_python_is_kept_warm_or_started_plainly(
    world: World, mode: Mode
) -> None:
    text = (
        "import os, sys, json\n"
        "sys.stderr.write('%s %d' % (json.load(sys.stdin)['a'], os.getppid()))\n"
        "print('%d %d' % sys.version_info[:2])\n"
    )
    for program, version in installed().items():
        fields: dict[str, Any] = {"interpreter": (program, "-u"), "parameters": {"a": "ä"}}
        runs = [await run_script(world, mode, text, **fields) for _ in range(2)]
        assert [run.result.stdout for run in runs] == ["{} {}\n".format(*version)] * 2
        words = {tuple(run.result.stderr.split()) for run in runs}
        ((word, parent),) = words
        assert word == "ä"
        assert (int(parent) == os.getpid()) == (version < (3, 8))


async def test_the_usual_interpreter_is_found_on_the_path_even_behind_a_wrapper(
    world: World, tmp_path: Path
) -> None:
    wrapper = tmp_path / "python3"
    wrapper.write_text(f'#!/bin/sh\nexport WRAPPED="$PWD"\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    text = "import os; print(os.getppid(), os.environ.get('WRAPPED'))"
    fields: dict[str, Any] = {"interpreter": (str(wrapper), "-u")}
    first, second = [await run_script(world, Mode.ISOLATED, text, **fields) for _ in range(2)]
    assert first.result.stdout == second.result.stdout
    parent, wrapped = first.result.stdout.split()
    assert int(parent) != os.getpid()
    assert wrapped == str(world.pack)
    plain = await run_script(world, Mode.ISOLATED, text, **fields, env_vars={"MINE": "1"})
    assert plain.result.stdout == f"{os.getpid()} {world.pack}\n"


async def test_one_run_sees_nothing_of_another(world: World) -> None:
    spoil = (
        "import builtins, json, os, sys\n"
        "builtins.spoilt = json.spoilt = sys.spoilt = 1\nglobals()['x'] = 1\n"
        "os.environ['SPOILT'] = '1'\nos.putenv('SPOILT', '1')\nos.chdir('/')\nos.umask(0)\n"
        "os.open('/dev/null', 0)\nsys.path.insert(0, '/spoilt')\nsys.stdout = None\n"
    )
    look_around = (
        "import builtins, json, os, sys\n"
        "print(any(hasattr(m, 'spoilt') for m in (builtins, json, sys)), 'x' in globals(),\n"
        "      'SPOILT' in os.environ, os.system('test -z \"$SPOILT\"'), os.getcwd(), os.umask(0),\n"
        "      len(os.listdir('/proc/self/fd')), '/spoilt' in sys.path)\n"
    )
    await run_script(world, Mode.ISOLATED, spoil)
    outcome = await run_script(world, Mode.ISOLATED, look_around)
    assert outcome.result.stdout == f"False False False 0 {world.pack} 18 4 False\n"


async def test_f41_what_one_run_was_told_is_in_no_memory_that_another_begins_with(
    world: World,
) -> None:
    secret = "hunter2-very-secret"
    told: dict[str, Any] = {
        "secrets": {"key": secret},
        "api_token": secret,
        "env_vars": {"PASSWORD": secret},
    }
    server = await parent_of_a_run(world, **told)
    for name in ("cmdline", "environ"):
        assert secret.encode() not in Path(f"/proc/{server}/{name}").read_bytes()
    search = (
        "import re\nword = bytes(reversed(b'terces-yrev-2retnuh'))\nfound = 0\n"
        "with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:\n"
        "    for line in maps:\n"
        "        start, end = (int(n, 16) for n in line.split()[0].split('-'))\n"
        "        if line.split()[1].startswith('rw'):\n"
        "            memory.seek(start)\n"
        "            found += memory.read(end - start).count(word[::-1][::-1])\n"
        "print(found)\n"
    )
    clean = await run_script(world, Mode.ISOLATED, search)
    own = await run_script(world, Mode.ISOLATED, search, **told)
    # Its own copy of the word, and what the search itself brings about.
    assert int(clean.result.stdout) < int(own.result.stdout)
    assert int(clean.result.stdout) <= 8


async def test_f41_a_forked_run_shows_its_execution_and_no_secret(world: World) -> None:
    running = world.start(
        world.file("s.py", "import os, time\nprint(f'pid {os.getpid()}.')\ntime.sleep(1000)\n"),
        **isolated(api_token="hunter2", secrets={"k": "hunter2"}),
    )
    (pid,) = await world.ear.hears_pids(1)
    shown = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    assert f"ATTUNE_EXEC_ID={world.execution_id}".encode() in shown.split(b"\0")
    assert b"s.py" in shown
    assert b"hunter2" not in shown
    world.cancel.set()
    assert (await running).result.exit_code == 128 + signal.SIGTERM


@pytest.mark.parametrize("mode", Mode)
async def test_a_cancel_ends_the_whole_family_though_it_ignores_term(
    world: World, mode: Mode
) -> None:
    running = world.start(world.file("s.py", FAMILY), **fields_of(mode))
    pids = await world.ear.hears_pids(FAMILY_SIZE)
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED
    assert outcome.result.exit_code == 137
    assert [pid for pid in pids if alive(pid)] == []
    assert survivors(world.execution_id) == []
    world.cancel.clear()
    assert (await run_script(world, mode, "print('next')")).result.stdout == "next\n"


@pytest.mark.parametrize("mode", Mode)
async def test_a_time_limit_ends_a_script_that_never_would(world: World, mode: Mode) -> None:
    outcome = await run_script(world, mode, "print('on')\nwhile True: pass", timeout_seconds=0.5)
    assert outcome.status is ExecutionStatus.TIMEOUT
    assert outcome.result.stdout == "on\n"
    assert outcome.result.exit_code == 128 + signal.SIGTERM


@pytest.mark.parametrize("mode", Mode)
async def test_a_run_whose_task_is_cancelled_leaves_no_process(world: World, mode: Mode) -> None:
    running = world.start(world.file("s.py", FAMILY), **fields_of(mode))
    pids = await world.ear.hears_pids(FAMILY_SIZE)
    running.cancel()
    await asyncio.wait({running})
    await until_none_survives(world.execution_id)
    await until(lambda: not any(map(alive, pids)))


async def test_a_run_that_is_cancelled_while_it_starts_leaves_no_process(world: World) -> None:
    server = await parent_of_a_run(world)
    name = world.file("s.py", "open('began', 'a').write('x')\nimport time\ntime.sleep(1000)\n")
    for turns in range(12):
        running = world.start(name, **isolated())
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
    await until(lambda: not children(server))
    assert await parent_of_a_run(world) == server


@pytest.mark.parametrize("mode", [Mode.ISOLATED, Mode.REUSE])
async def test_runs_end_well_though_their_interpreter_was_killed(world: World, mode: Mode) -> None:
    os.mkfifo(world.pack / "fifo")
    text = (
        "import os\nprint(f'pid {os.getppid()}.')\nopen('fifo').read()\n"
        "print('still here')\nraise SystemExit(6)\n"
    )
    running = world.start(world.file("s.py", text), **fields_of(mode))
    (server,) = await world.ear.hears_pids(1)
    os.kill(server, signal.SIGKILL)
    await until(lambda: look(server) is None)
    if mode is Mode.REUSE:
        # A process that stays goes with its interpreter: nobody would end it after the worker.
        outcome = await running
        assert outcome.status is ExecutionStatus.FAILED
        assert outcome.result.exit_code == 137
    else:
        await asyncio.to_thread((world.pack / "fifo").write_text, "go")
        outcome = await running
        assert outcome.result.stdout.endswith("still here\n")
        assert outcome.result.exit_code == 6
    assert await parent_of_a_run(world) not in (server, os.getpid())


async def test_an_interpreter_that_was_killed_between_runs_is_replaced(world: World) -> None:
    server = await parent_of_a_run(world)
    os.kill(server, signal.SIGKILL)
    # At once: the worker has not heard of it yet.
    replaced = await parent_of_a_run(world)
    assert replaced not in (server, os.getpid())
    assert look(server) is None


async def test_more_starts_than_a_link_holds_all_come_to_their_end(world: World) -> None:
    server = await parent_of_a_run(world)
    os.kill(server, signal.SIGSTOP)
    name = world.file("s.py", "print('ran')")
    running = [world.start(name, **isolated()) for _ in range(60)]
    await until(lambda: len(list(world.work.glob("run-*"))) == 60)
    os.kill(server, signal.SIGCONT)
    assert {(await each).result.stdout for each in running} == {"ran\n"}


async def test_a_stopped_interpreter_holds_no_run_that_can_be_cancelled(world: World) -> None:
    server = await parent_of_a_run(world)
    os.kill(server, signal.SIGSTOP)
    running = world.start(world.file("s.py", "print('ran')"), **isolated())
    await asyncio.sleep(0)
    os.kill(server, signal.SIGCONT)
    assert (await running).result.stdout == "ran\n"


async def test_what_is_installed_later_is_found(world: World, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60
    )
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    fields: dict[str, Any] = {"interpreter": (str(tmp_path / "env" / "bin" / "python"), "-u")}
    text = (
        "import sys\ntry:\n    import later\n    print(later.NAME)\nexcept ImportError: print('no')"
    )
    seen = [(await run_script(world, Mode.ISOLATED, text, **fields)).result.stdout]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "later.py").write_text("NAME = 'found'")
    (packages / "later.pth").write_text(str(tmp_path / "elsewhere"))
    seen.append((await run_script(world, Mode.ISOLATED, text, **fields)).result.stdout)
    assert seen == ["no\n", "found\n"]


async def test_an_interpreter_whose_start_leaves_threads_is_not_forked(
    world: World, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60
    )
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (packages / "busy.pth").write_text(
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    fields: dict[str, Any] = {"interpreter": (str(tmp_path / "env" / "bin" / "python"), "-u")}
    with capture_logs() as logs:
        parents = {await parent_of_a_run(world, **fields) for _ in range(2)}
    assert parents == {os.getpid()}
    assert [line["event"] for line in logs] == ["An interpreter cannot be kept warm."]
    assert logs[0]["reason"] == "its start leaves threads running"


async def test_limits_hold_in_a_forked_run(world: World) -> None:
    text = (
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "try:\n    x = bytearray(500_000_000)\nexcept MemoryError: print('too much')\n"
    )
    limits = Limits(memory_mb=200, open_files=77)
    outcome = await run_script(world, Mode.ISOLATED, text, limits=limits)
    assert outcome.result.stdout == "(77, 77)\ntoo much\n"
    assert (await run_script(world, Mode.ISOLATED, text)).result.stdout.count("77") == 0


async def test_a_missing_folder_is_told_as_for_any_process(world: World) -> None:
    text = "import shutil, os; shutil.rmtree(os.getcwd()); print('gone')"
    running = world.start(world.file("s.py", text), **isolated())
    assert (await running).result.stdout == "gone\n"
    outcome = await world.run("s.py", **isolated())
    assert "has no folder on this worker" in str(outcome.result.error)


async def test_signals_to_the_worker_s_group_do_not_reach_its_interpreters(world: World) -> None:
    server = look(await parent_of_a_run(world))
    assert server is not None
    assert server.session == server.pid != os.getsid(0)


def test_a_worker_that_is_killed_leaves_no_interpreter(tmp_path: Path) -> None:
    (tmp_path / "pack" / "actions").mkdir(parents=True)
    (tmp_path / "pack" / "actions" / "s.py").write_text(PARENT)
    program = (
        "import asyncio, os, sys\nfrom pathlib import Path\n"
        "from tests.unit.worker.scripts import fields_of, Mode\n"
        "from tests.unit.worker.worlds import World\n"
        "async def main():\n"
        f"    world = World(Path({str(tmp_path)!r}) / 'world')\n"
        f"    name = world.file('s.py', {PARENT!r})\n"
        "    for mode in (Mode.ISOLATED, Mode.REUSE):\n"
        "        print((await world.run(name, **fields_of(mode))).result.stdout.strip(), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    servers = {int(line) for line in ended.stdout.split()}
    assert len(servers) == 1
    wait_until(lambda: not any(map(alive, servers)))


@pytest.mark.parametrize("mode", [Mode.ISOLATED, Mode.REUSE])
async def test_nothing_is_left_after_two_hundred_runs(world: World, mode: Mode) -> None:
    name = world.file("s.py", "import json, sys; print(json.load(sys.stdin)['n'])")

    async def run(number: int) -> Outcome:
        return await world.run(name, **fields_of(mode, parameters={"n": number}))

    await run(0)
    before, bodies_before = open_descriptors(), bodies()
    for start in range(0, 200, 8):
        outcomes = await asyncio.gather(*(run(start + n) for n in range(8)))
        assert [o.result.stdout for o in outcomes] == [f"{start + n}\n" for n in range(8)]
    if mode is Mode.ISOLATED:
        assert open_descriptors() <= before
    server = await parent_of_a_run(world)
    await world.runner.close()
    assert look(server) is None
    assert bodies() <= bodies_before
    assert open_descriptors() < before
    assert world.leftovers() == []


async def test_a_closed_runner_can_be_used_again(world: World) -> None:
    first = await parent_of_a_run(world)
    await world.runner.close()
    assert await parent_of_a_run(world) not in (first, os.getpid())


async def test_a_file_that_is_no_python_program_is_refused_by_python_itself(world: World) -> None:
    shutil.copy("/bin/true", world.pack / "actions" / "binary.py")
    outcome = await world.run("binary.py", **isolated())
    assert outcome.status is ExecutionStatus.FAILED
    assert "Error" in outcome.result.stderr


async def test_other_runtimes_are_started_as_before(world: World) -> None:
    outcome = await world.run_file(Runtime.SHELL, world.file("a.sh", "echo $PPID"), reuse=True)
    assert outcome.result.stdout == f"{os.getpid()}\n"
