"""What a run costs over the bare process: the folder, the parameters, the streams and the look for leftovers."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from attune.kernel.clock import SystemClock
from attune.kernel.ids import ExecutionId
from attune.worker.model import Action, Run, Runtime
from attune.worker.runner import Runner
from bench.measure import Case

AT_ONCE = 4


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case]]:
    runs = 40 if quick else 200
    runner = Runner(clock=SystemClock(), environment=os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shell = _run(folder, Runtime.SHELL, "core.inline", inline=True)
        echo = _run(folder, Runtime.NATIVE, "core.echo")
        yield [
            Case("bash, bare", lambda: _each(runs, _bare)),
            Case("inline shell", lambda: _each(runs, _by(runner, shell)), "bash, bare"),
            Case(
                "inline shell, 4 at once", lambda: _together(runs, _by(runner, shell)), "bash, bare"
            ),
            Case("native echo", lambda: _each(runs * 50, _by(runner, echo))),
        ]


def _run(folder: Path, runtime: Runtime, ref: str, *, inline: bool = False) -> Run:
    action = Action(
        ref=ref, pack_ref="core", runtime=runtime, entrypoint='echo "$message"', inline=inline
    )
    return Run(
        execution_id=ExecutionId(1),
        action=action,
        parameters={"message": "hello"},
        artifacts_dir=folder / "artifacts",
        work_dir=folder / "work",
    )


def _by(runner: Runner, run: Run) -> Callable[[], Awaitable[None]]:
    never = asyncio.Event()

    async def once() -> None:
        outcome = await runner.run(run, cancel=never)
        assert outcome.result.stdout == "hello\n"

    return once


async def _bare() -> None:
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", 'echo "$0"', "hello", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    stdout, _ = await process.communicate()
    assert stdout == b"hello\n"


async def _each(runs: int, once: Callable[[], Awaitable[None]]) -> int:
    for _ in range(runs):
        await once()
    return runs


async def _together(runs: int, once: Callable[[], Awaitable[None]]) -> int:
    await asyncio.gather(*(_each(runs // AT_ONCE, once) for _ in range(AT_ONCE)))
    return runs
