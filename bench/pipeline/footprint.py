"""Memory of each role, and how long its start takes; the same of commands that people type."""

import asyncio
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

from bench.pipeline.installation import Installation
from bench.pipeline.loads import NOOP, run_action
from bench.pipeline.process import COMMAND, AttuneProcess, environment
from harness.ports import free_port

_LOOK_EVERY: Final = 0.2


async def loaded_memory(installation: Installation, count: int) -> Mapping[str, float]:
    """The most that was seen while so many executions ran."""
    work = asyncio.create_task(run_action(installation, NOOP, count))
    most = dict(_memory(installation))
    while not work.done():
        await asyncio.wait({work}, timeout=_LOOK_EVERY)
        for name, value in _memory(installation).items():
            most[name] = max(most[name], value)
    await work
    return most


def _memory(installation: Installation) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name, process in installation.roles.items():
        found |= _memory_of(name, process)
    return found


def _memory_of(role: str, process: AttuneProcess) -> dict[str, float]:
    resident, share = process.memory()
    return {f"{role}, resident": resident, f"{role}, share of all its processes": share}


class Starts:
    """Fresh processes, one role after the other, beside an installation that runs or, on SQLite, in its own folder."""

    def __init__(self, roles: Sequence[str], variables: Mapping[str, str]) -> None:
        self._roles = roles
        self._variables = variables
        self._memory: dict[str, float] = {}

    async def times(self) -> Mapping[str, float]:
        """Milliseconds from spawning to ready, and of CPU time until then."""
        found: dict[str, float] = {}
        for role in self._roles:
            found |= await asyncio.to_thread(self._start, role)
        return found

    async def memory(self) -> Mapping[str, float]:
        """Of those that were started last, when they had done nothing yet."""
        if not self._memory:
            await self.times()
        return self._memory

    def _start(self, role: str) -> dict[str, float]:
        port = {"ATTUNE__SERVER__PORT": str(free_port())}
        process = AttuneProcess(role, variables={**self._variables, **port})
        try:
            process.wait_until_ready()
            self._memory |= _memory_of(role, process)
            return {f"{role}, ready": process.started_in * 1e3, f"{role}, CPU": process.cpu * 1e3}
        finally:
            process.stop()


async def command(installation: Installation, *arguments: str) -> Mapping[str, float]:
    """Milliseconds of a command from its start to its end, and of its own CPU time."""
    variables = {
        "ATTUNE_URL": installation.address,
        "ATTUNE_TOKEN": installation.token,
    }
    return await asyncio.to_thread(_command, arguments, variables)


def _command(arguments: tuple[str, ...], variables: Mapping[str, str]) -> Mapping[str, float]:
    before, start = _children_cpu(), time.perf_counter()
    subprocess.run(
        [COMMAND, *arguments], env=environment(variables), capture_output=True, check=True
    )
    seconds = time.perf_counter() - start
    return {"wall": seconds * 1e3, "CPU": (_children_cpu() - before) * 1e3}


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
