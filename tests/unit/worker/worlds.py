"""A runner with folders of its own, and an ear on what its actions write."""

import asyncio
import os
import re
from collections.abc import Collection
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from attune.kernel.clock import Clock, SystemClock
from attune.kernel.ids import ExecutionId
from attune.worker.model import Action, Outcome, Run, RunnerSettings, Runtime, Stream
from attune.worker.proc import has_variable, look
from attune.worker.runner import Runner

PATIENCE = 20.0
# Tells its number, and lets nobody but KILL end it or its child.
STUBBORN = """
trap '' TERM
echo "pid $BASHPID."
while :; do sleep 1000; done
"""
_numbers = count()
_ACTION_FIELDS = frozenset(Action.__struct_fields__)


class Ear:
    """Hears live output; a test waits for words instead of sleeping."""

    def __init__(self) -> None:
        self.text = dict.fromkeys(Stream, "")
        self._news = asyncio.Event()

    def __call__(self, stream: Stream, text: str) -> None:
        self.text[stream] += text
        self._news.set()

    async def hears(self, words: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while words not in self.text[Stream.STDOUT]:
                self._news.clear()
                await self._news.wait()

    async def hears_pids(self, count: int) -> list[int]:
        """The numbers of `count` lines of the form `pid 123.`"""
        async with asyncio.timeout(PATIENCE):
            while (
                len(found := re.findall(r"^pid (\d+)\.$", self.text[Stream.STDOUT], re.M)) < count
            ):
                self._news.clear()
                await self._news.wait()
        return [int(pid) for pid in found]


class World:
    execution_ids: ClassVar[list[int]] = []
    runners: ClassVar[list[Runner]] = []

    def __init__(
        self, folder: Path, *, grace: float = 0.2, clock: Clock | None = None, **settings: Any
    ) -> None:
        self.pack = folder / "pack"
        self.work = folder / "work"
        self.artifacts = folder / "artifacts"
        (self.pack / "actions").mkdir(parents=True)
        (self.pack / "stubborn.sh").write_text(STUBBORN)
        self.ear = Ear()
        self.execution_id = os.getpid() * 1000 + next(_numbers)
        self.execution_ids.append(self.execution_id)
        self.cancel = asyncio.Event()
        self.runner = Runner(
            clock=clock or SystemClock(),
            environment={**os.environ, "ENGINE_SECRET": "hidden"},
            settings=RunnerSettings(grace=grace, **settings),
        )
        self.runners.append(self.runner)

    def file(self, name: str, text: str) -> str:
        path = self.pack / "actions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def make(self, entrypoint: str = "", **fields: Any) -> Run:
        """A run of an inline script, unless the fields say otherwise."""
        of_action = {name: fields.pop(name) for name in _ACTION_FIELDS & fields.keys()}
        defaults: dict[str, Any] = {
            "ref": "mypack.act",
            "pack_ref": "mypack",
            "runtime": Runtime.SHELL,
            "inline": True,
            "pack_dir": self.pack,
        }
        action = Action(entrypoint=entrypoint, **{**defaults, **of_action})
        return Run(
            execution_id=ExecutionId(fields.pop("execution_id", self.execution_id)),
            action=action,
            artifacts_dir=self.artifacts,
            work_dir=self.work,
            **fields,
        )

    async def run(self, entrypoint: str = "", **fields: Any) -> Outcome:
        async with asyncio.timeout(PATIENCE * 3):
            made = self.make(entrypoint, **fields)
            return await self.runner.run(made, cancel=self.cancel, on_output=self.ear)

    def leftovers(self) -> list[Path]:
        """What runs have left: all but inline scripts, and folders that wait empty for the next run."""
        found = [file for file in self.work.rglob("*") if file.parent.parent == self.work]
        return [
            file
            for file in found
            if not (file.parent.name.startswith("script-") or _is_empty_scratch(file))
        ]

    def start(self, entrypoint: str = "", **fields: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.run(entrypoint, **fields))

    async def run_file(self, runtime: Runtime, entrypoint: str, **fields: Any) -> Outcome:
        return await self.run(entrypoint, **{"runtime": runtime, "inline": False, **fields})

    async def run_native(self, ref: str, **fields: Any) -> Outcome:
        return await self.run(ref=ref, runtime=Runtime.NATIVE, inline=False, **fields)


def alive(pid: int) -> bool:
    process = look(pid)
    return process is not None and process.lives


def survivors(execution_id: int) -> list[int]:
    """Every process on this machine that was started for the execution."""
    mark = f"ATTUNE_EXEC_ID={execution_id}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if has_variable(pid, mark)]


async def until_dead(pids: Collection[int]) -> None:
    """A process that ends loses its variables a moment before it is dead."""
    async with asyncio.timeout(PATIENCE):
        while any(map(alive, pids)):
            await asyncio.sleep(0.005)


async def until_none_survives(execution_id: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while survivors(execution_id):
            await asyncio.sleep(0.005)


def _is_empty_scratch(file: Path) -> bool:
    return file.name == "tmp" and list(file.iterdir()) == []
