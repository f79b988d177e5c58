"""What a worker says that it can run, with programs of the test's own on its PATH."""

import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from attune import __version__
from attune.catalog.model import Runtime
from attune.kernel.ids import RuntimeId
from attune.pipeline.workers.model import RuntimeSupport
from attune.worker.detection import Found, Program, found_runtimes, supported_runtimes, supports

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Programs:
    """A folder of programs; no other is on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = str(folder)

    def add(self, name: str, *lines: str) -> str:
        file = self.folder / name
        file.write_text("\n".join(("#!/bin/sh", *lines, "")))
        file.chmod(0o755)
        return str(file)

    async def found(self, *rows: Runtime, seconds: float = 5.0) -> dict[str, list[str]]:
        told = supports(await found_runtimes(self.path, rows, seconds))
        return {one.name: one.versions for one in told if one.name != "native"}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Programs(folder)


def runtime(ref: str, commands: Any = None, interpreter: Any = None) -> Runtime:
    verification = {} if commands is None else {"verification": {"commands": commands}}
    return Runtime(
        id=RuntimeId(1),
        ref=ref,
        pack=None,
        pack_ref=None,
        name=ref,
        distributions=verification,
        execution_config={} if interpreter is None else {"interpreter": interpreter},
        is_adhoc=True,
        created=NOW,
        updated=NOW,
    )


async def test_without_programs_only_what_needs_none_can_run(programs: Programs) -> None:
    assert supports(await found_runtimes(programs.path)) == [
        RuntimeSupport("native", [__version__])
    ]


async def test_the_versions_are_those_that_the_programs_print(programs: Programs) -> None:
    programs.add("bash", "echo 'GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)'")
    programs.add("python3", "echo Python 3.11.2")
    programs.add("node", "echo v20.11.1")
    assert await programs.found() == {
        "nodejs": ["20.11.1"],
        "python": ["3.11.2"],
        "shell": ["5.2.15"],
    }


async def test_this_machine_has_what_its_programs_say() -> None:
    told = {one.name: one.versions for one in supports(await found_runtimes(os.environ["PATH"]))}
    assert told["shell"][0][0].isdigit()
    assert all(version.startswith("3.") for version in told["python"])


async def test_other_versions_of_a_program_are_found_by_their_names(programs: Programs) -> None:
    programs.add("python3.11", "echo Python 3.11.2")
    (programs.folder / "python3").symlink_to("python3.11")
    newer = programs.add("python3.12", "echo Python 3.12.1")
    programs.add("python3.9", "echo Python 3.9.18")
    programs.add("python2.7", "echo Python 2.7.18")
    programs.add("python3-config", "echo 3.99.0")
    programs.add("node18", "echo v18.19.0")
    assert await programs.found() == {
        "nodejs": ["18.19.0"],
        "python": ["3.9.18", "3.11.2", "3.12.1"],
    }
    [_, python] = await found_runtimes(programs.path)
    usual = str(programs.folder / "python3")
    assert (python.program(None), python.program("*"), python.program("3.11")) == (usual,) * 3
    assert (python.program(">=3.12"), python.program("3.13")) == (newer, None)


def test_the_usual_program_is_taken_if_it_will_do_and_else_the_newest() -> None:
    found = Found(
        "python",
        (Program("3.11.2", "usual"), Program("3.9.1", "old"), Program("3.12.1", "new")),
    )
    assert found.program(">=3.9") == "usual"
    assert found.program("!=3.11") == "new"
    assert found.program("<3.11") == "old"


async def test_a_program_that_is_broken_is_left_out_and_told(programs: Programs) -> None:
    broken = programs.add("bash", "echo bash 5.2", "exit 3")
    programs.add("node", "echo v20.11.1")
    with capture_logs() as logs:
        assert await programs.found() == {"nodejs": ["20.11.1"]}
    [line] = [one for one in logs if one["log_level"] == "warning"]
    assert (line["program"], line["runtime"]) == (broken, "core.shell")
    assert line["reason"] == "its exit code is 3, not 0"


async def test_one_that_cannot_be_started_or_says_too_much_is_left_out(programs: Programs) -> None:
    (programs.folder / "bash").write_text("#!/no/such/interpreter\n")
    (programs.folder / "bash").chmod(0o755)
    programs.add("node", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    with capture_logs() as logs:
        assert await programs.found() == {}
    reasons = [one["reason"] for one in logs]
    assert any("cannot be started" in one for one in reasons)
    assert any("more than 65536 bytes" in one for one in reasons)


async def test_one_that_hangs_is_given_up_with_its_children_and_the_others_do_not_wait(
    programs: Programs, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    sleeper = f"/bin/sleep 60 & echo $! >> {pids}"
    for name in ("node", "python3", "bash"):
        programs.add(name, sleeper, "wait" if name != "bash" else "echo bash 5.2.1")
    begun = time.monotonic()
    with capture_logs() as logs:
        assert await programs.found(seconds=4.0) == {}
    assert time.monotonic() - begun < 2 * 4.0
    assert {one["reason"] for one in logs} == {"it did not end within 4 s"}
    for pid in pids.read_text().split():
        while has_not_ended(pid):
            await asyncio.sleep(0.01)


def has_not_ended(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_one_whose_output_a_stranger_keeps_open_is_not_waited_for(
    programs: Programs, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    stranger = f"import os, time; os.setsid(); print(os.getpid(), file=open({str(pid)!r}, 'w')); time.sleep(60)"
    programs.add(
        "node",
        f'{sys.executable} -c "{stranger}" &',
        f"while ! [ -s {pid} ]; do :; done",
        "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    )
    try:
        async with asyncio.timeout(60):
            assert await programs.found(seconds=30.0) == {}
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_a_program_is_given_the_path_and_nothing_else(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTUNE_TEST_SECRET", "seen")
    programs.add("bash", 'echo "5.1.1 ${ATTUNE_TEST_SECRET-unseen} $PATH" > "$0.seen"; echo 5.1.1')
    assert await programs.found() == {"shell": ["5.1.1"]}
    seen = (programs.folder / "bash.seen").read_text()
    assert seen.split() == ["5.1.1", "unseen", programs.path]


async def test_a_program_that_works_is_asked_once_and_again_when_it_has_changed(
    programs: Programs,
) -> None:
    count = programs.folder / "count"
    programs.add("bash", f"echo x >> {count}", "echo 5.1.1")
    for _ in range(2):
        assert await programs.found() == {"shell": ["5.1.1"]}
    assert count.read_text() == "x\n"
    programs.add("bash", f"echo x >> {count}", "echo 5.2.2")
    os.utime(programs.folder / "bash", ns=(1, 1))
    assert await programs.found() == {"shell": ["5.2.2"]}


class TestRuntimesOfPacks:
    async def test_they_have_their_whole_ref_and_any_of_their_commands_suffices(
        self, programs: Programs
    ) -> None:
        programs.add("ruby3.1", "echo ruby 3.1.2p20")
        commands = [
            {"binary": "jruby", "args": ["-v"], "priority": 1},
            {"binary": "ruby", "args": ["-v"], "priority": 2, "exit_code": 0, "note": "any"},
        ]
        assert await programs.found(runtime("b.ruby", commands)) == {"b.ruby": ["3.1.2"]}

    async def test_the_commands_tell_which_exit_code_and_which_words_are_right(
        self, programs: Programs
    ) -> None:
        programs.add("tool", 'echo "tool $1 4.5"', "exit 2")
        right = {"binary": "tool", "args": ["about"], "exit_code": 2, "pattern": "^tool about"}
        assert await programs.found(runtime("b.tool", [right])) == {"b.tool": ["4.5"]}
        for change in ({"exit_code": 0}, {"pattern": "^other"}, {"pattern": "("}):
            assert await programs.found(runtime("b.tool", [right | change])) == {}

    async def test_without_commands_the_interpreter_is_asked(self, programs: Programs) -> None:
        programs.add("lua", "echo no number")
        rows = (runtime("b.lua", None, {"binary": "lua"}), runtime("b.nothing"))
        assert await programs.found(*rows) == {"b.lua": []}

    async def test_a_row_takes_the_place_of_our_own_file(self, programs: Programs) -> None:
        programs.add("python4", "echo Python 4.0.0")
        row = runtime("core.python", [{"binary": "python4"}])
        assert await programs.found(row) == {"python": ["4.0.0"]}

    @pytest.mark.parametrize(
        "commands", ["text", [1], [{}], [{"binary": 1}], [{"binary": "bash", "args": "x"}]]
    )
    async def test_commands_that_are_none_are_told_and_stop_nobody(
        self, programs: Programs, commands: Any
    ) -> None:
        programs.add("bash", "echo 5.2.1")
        with capture_logs() as logs:
            assert await programs.found(runtime("b.odd", commands)) == {"shell": ["5.2.1"]}
        assert [one["runtime"] for one in logs] == ["b.odd"]


async def test_what_is_there_can_be_told_without_running_anything(programs: Programs) -> None:
    programs.add("bash", "exit 1")
    programs.add("node", "exit 1")
    assert supported_runtimes(programs.path) == [
        RuntimeSupport("native", [__version__]),
        RuntimeSupport("shell"),
        RuntimeSupport("nodejs"),
    ]
