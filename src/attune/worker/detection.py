"""Which runtimes a worker has, in which versions: found by running the commands that the runtimes declare.

Beside the program that a command names, those of other versions count that are on the PATH under the usual names:
`python3.12` for `python3`, `node20` for `node`. Whatever does not work is left out and told in the log: a worker
that promises what it cannot run fails executions that another could have run.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from attune import __version__
from attune.catalog.model import Runtime
from attune.catalog.packs import CORE_PACK
from attune.catalog.runners import NATIVE
from attune.catalog.sources.documents import read_document
from attune.catalog.version_constraints import order_of, satisfies, version_in
from attune.pipeline.scheduling.compatibility import runtime_name
from attune.pipeline.workers.model import RuntimeSupport
from attune.worker.verification import Broken, Command, answer, fits

_SECONDS: Final = 5.0
_AT_ONCE: Final = 8

_log = structlog.get_logger()


class Program(msgspec.Struct, frozen=True):
    """`version` is empty where it does not tell."""

    version: str
    path: str


class Found(msgspec.Struct, frozen=True):
    """A runtime under the name that executions ask for, and what runs its actions: the usual program first."""

    name: str
    programs: tuple[Program, ...]

    def program(self, constraint: str | None) -> str | None:
        """The usual one if its version will do, else the newest that does."""
        fitting = [one for one in self.programs if satisfies(one.version, constraint or "*")]
        if fitting and fitting[0] is self.programs[0]:
            return fitting[0].path
        newest = max(fitting, key=lambda one: order_of(one.version), default=None)
        return newest.path if newest else None


class _Declared(msgspec.Struct, frozen=True):
    ref: str
    distributions: dict[str, Any] = {}
    execution_config: dict[str, Any] = {}


def supported_runtimes(path: str) -> list[RuntimeSupport]:
    """Those whose programs are there, without their versions."""
    usual = (("shell", "bash"), ("python", "python3"), ("nodejs", "node"))
    there = [RuntimeSupport(name) for name, each in usual if shutil.which(each, path=path)]
    return [RuntimeSupport("native", [__version__]), *there]


async def found_runtimes(
    path: str, runtimes: Sequence[Runtime] = (), seconds: float = _SECONDS
) -> list[Found]:
    """By name, without `native`, which needs no program. No program gets more than `seconds` to answer."""
    declared = {one.ref: one for one in _of_core_pack()}
    for row in runtimes:
        declared[row.ref] = _Declared(row.ref, row.distributions, row.execution_config)
    declared.pop(NATIVE, None)
    look = _Look(path, seconds)
    found = await asyncio.gather(*(look.at(declared[ref]) for ref in sorted(declared)))
    return [one for one in found if one.programs]


def supports(found: Iterable[Found]) -> list[RuntimeSupport]:
    """What a worker says of itself: versions from the oldest to the newest; `native` has our own."""
    told = [RuntimeSupport("native", [__version__])]
    for one in found:
        versions = {program.version for program in one.programs if program.version}
        told.append(RuntimeSupport(one.name, sorted(versions, key=order_of)))
    return told


class _Look:
    def __init__(self, path: str, seconds: float) -> None:
        self._path = path
        self._seconds = seconds
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def at(self, declared: _Declared) -> Found:
        """Commands are alternatives: the first under which anything works is the runtime's."""
        for command in _commands(declared):
            names = [command.binary, *_siblings(command.binary, self._path)]
            asking = [self._ask(declared.ref, command, each) for each in self._distinct(names)]
            programs = tuple(one for one in await asyncio.gather(*asking) if one is not None)
            if programs:
                return Found(runtime_name(declared.ref), programs)
        return Found(runtime_name(declared.ref), ())

    def _distinct(self, names: Sequence[str]) -> list[str]:
        """Where each is found first, as a shell would; one that several names lead to is asked once."""
        found: dict[str, str] = {}
        for name in names:
            program = shutil.which(name, path=self._path)
            if program is not None:
                found.setdefault(os.path.realpath(program), program)
        return list(found.values())

    async def _ask(self, ref: str, command: Command, program: str) -> Program | None:
        try:
            async with self._turns:
                printed = await answer(program, command, self._path, self._seconds)
            if fits(printed, command):
                return Program(version_in(printed) or "", program)
            _log.info("A program is another one than its name says.", runtime=ref, program=program)
        except Broken as error:
            # That of another version is often a stand-in for one that is not installed.
            tell = _log.warning if Path(program).name == command.binary else _log.info
            tell("A program does not work.", runtime=ref, program=program, reason=error.message)
        return None


def _siblings(binary: str, path: str) -> list[str]:
    """Names on the PATH that are the program's with a version behind them, the newest first: that of `python3`
    begins with 3."""
    stem = binary.rstrip("0123456789.")
    if not stem or "/" in binary:
        return []
    begin = re.escape(binary.removeprefix(stem))
    name = re.compile(rf"{re.escape(stem)}-?({begin}\d*(?:\.\d+)*)", re.ASCII)
    found = {entry for folder in path.split(os.pathsep) for entry in _entries(folder)}
    versions = {each: match[1] for each in found if (match := name.fullmatch(each)) and match[1]}
    return sorted(versions, key=lambda each: (order_of(versions[each]), each), reverse=True)


def _entries(folder: str) -> list[str]:
    try:
        return [each.name for each in Path(folder).iterdir()] if folder else []
    except OSError:
        return []


def _commands(declared: _Declared) -> list[Command]:
    """What its file or row says; failing that, its interpreter is asked for its version."""
    verification = declared.distributions.get("verification")
    said = verification.get("commands") if isinstance(verification, dict) else None
    if not said:
        interpreter = declared.execution_config.get("interpreter")
        said = [{"binary": interpreter.get("binary")}] if isinstance(interpreter, dict) else []
    try:
        commands = msgspec.convert(said, list[Command])
    except msgspec.ValidationError as error:
        _log.warning("A runtime is not looked for.", runtime=declared.ref, reason=str(error))
        return []
    return sorted(commands, key=lambda one: one.priority)


def _of_core_pack() -> list[_Declared]:
    files: list[Path] = sorted((CORE_PACK / "runtimes").glob("*.yaml"))
    return [msgspec.convert(read_document(file.read_bytes()), _Declared) for file in files]
