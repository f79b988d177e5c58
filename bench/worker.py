"""What a run costs over the bare process: the folder, the parameters, the streams and the look for leftovers.

Each kind of action stands beside what the machine does without Attune: the same command, started by `subprocess.run`
from as many threads as there are runs at once.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attune.kernel.clock import SystemClock
from attune.kernel.ids import ExecutionId
from attune.worker.model import Action, Run, Runtime
from attune.worker.runner import Runner
from bench.measure import Case

AT_ONCE = 4
PARAMETERS = b'{"message":"hello"}\n'
SHELL = 'echo "$message"'
SCRIPT = 'read -r line; echo "${line:12:5}"'
PYTHON = 'import json, sys\nprint(json.load(sys.stdin)["message"])\n'

Once = Callable[[], Awaitable[None]]


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case]]:
    runs = 40 if quick else 200
    runner = Runner(clock=SystemClock(), environment=os.environ)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as threads:
        bench = Bench(Path(name), runner, threads)
        yield [*_shell_cases(bench, runs), *_python_cases(bench, runs), *_native_cases(bench, runs)]
        await runner.close()


class Bench:
    def __init__(self, folder: Path, runner: Runner, threads: ThreadPoolExecutor) -> None:
        self._folder = folder
        self._runner = runner
        self._threads = threads
        (folder / "pack" / "actions").mkdir(parents=True)

    def file(self, name: str, text: str) -> Path:
        path = self._folder / "pack" / "actions" / name
        path.write_text(text)
        return path

    def run(self, **action: Any) -> Once:
        """A run of the worker, whole."""
        run = Run(
            execution_id=ExecutionId(1),
            action=Action(pack_ref="bench", pack_dir=self._folder / "pack", **action),
            parameters={"message": "hello"},
            artifacts_dir=self._folder / "artifacts",
            work_dir=self._folder / "work",
        )
        never = asyncio.Event()

        async def once() -> None:
            outcome = await self._runner.run(run, cancel=never)
            assert outcome.result.stdout == "hello\n", outcome.result

        return once

    def bare(self, *command: str) -> Callable[[int, int], Awaitable[int]]:
        """So many starts, from so many threads at once."""

        def some(count: int) -> None:
            for _ in range(count):
                ended = subprocess.run(command, input=PARAMETERS, capture_output=True, check=True)
                assert ended.stdout == b"hello\n", ended

        async def starts(count: int, at_once: int) -> int:
            loop = asyncio.get_running_loop()
            shares = [count // at_once] * at_once
            await asyncio.gather(*(loop.run_in_executor(self._threads, some, n) for n in shares))
            return count

        return starts


def _shell_cases(bench: Bench, runs: int) -> list[Case]:
    file = bench.file("script.sh", SCRIPT)
    bare = bench.bare("bash", str(file))
    bare_inline = bench.bare("bash", "-c", f"message=hello; {SHELL}")
    inline = bench.run(ref="bench.inline", runtime=Runtime.SHELL, entrypoint=SHELL, inline=True)
    script = bench.run(ref="bench.script", runtime=Runtime.SHELL, entrypoint=file.name)
    return [
        Case("bash, bare", lambda: bare_inline(runs, 1)),
        Case("inline shell", lambda: _each(runs, inline), "bash, bare"),
        Case("bash, bare, 4 at once", lambda: bare_inline(runs, AT_ONCE)),
        Case("inline shell, 4 at once", lambda: _together(runs, inline), "bash, bare, 4 at once"),
        Case("bash with a file, bare, 4 at once", lambda: bare(runs, AT_ONCE)),
        Case(
            "shell file, 4 at once",
            lambda: _together(runs, script),
            "bash with a file, bare, 4 at once",
        ),
    ]


def _python_cases(bench: Bench, runs: int) -> list[Case]:
    file = bench.file("script.py", PYTHON)
    words = (sys.executable, "-u")
    bare = bench.bare(*words, str(file))
    action: dict[str, Any] = {
        "ref": "bench.python",
        "runtime": Runtime.PYTHON,
        "entrypoint": file.name,
        "interpreter": words,
    }
    isolated = bench.run(**action)
    reuse = bench.run(**{**action, "ref": "bench.reuse"}, reuse=True)
    alone, together = "python, one start each", "python, one start each, 4 at once"
    return [
        Case(alone, lambda: bare(runs // 2, 1)),
        Case("python, isolated", lambda: _each(runs, isolated), alone),
        Case("python, reuse", lambda: _each(runs * 10, reuse), alone),
        Case(together, lambda: bare(runs // 2, AT_ONCE)),
        Case("python, isolated, 4 at once", lambda: _together(runs * 2, isolated), together),
        Case("python, reuse, 4 at once", lambda: _together(runs * 20, reuse), together),
    ]


def _native_cases(bench: Bench, runs: int) -> list[Case]:
    echo = bench.run(ref="core.echo", runtime=Runtime.NATIVE)
    return [Case("native echo", lambda: _each(runs * 50, echo))]


async def _each(runs: int, once: Once) -> int:
    for _ in range(runs):
        await once()
    return runs


async def _together(runs: int, once: Once) -> int:
    await asyncio.gather(*(_each(runs // AT_ONCE, once) for _ in range(AT_ONCE)))
    return runs
