"""Asks a program for its version: bounded in time and in output, and with nothing of ours around it."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError
from attune.expressions.patterns import compile_pattern
from attune.kernel.errors import AttuneError

_MOST_BYTES: Final = 64 * 1024


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """As a runtime declares it. Of several the first that works is taken, those of a lower `priority` before others."""

    binary: str
    args: tuple[str, ...] = ("--version",)
    exit_code: int = 0
    pattern: str | None = None
    priority: int = 0


class Broken(AttuneError):
    """A program that is there and does not work. The message says what it did, or did not do."""

    code = "program_broken"


class Slow(Broken):
    """It may only have been so because the machine was busy."""


# By program, with the time of its last change, and what it is asked with.
_Key = tuple[str, int, Command, str]
_told: dict[_Key, str | Broken] = {}


async def answer(program: str, command: Command, path: str, seconds: float) -> str:
    """What it prints, of either stream; `Broken` unless it ends in time and as the command says.

    A process asks a program until it answers, and no more, so that a worker that comes again is there at once.
    """
    key = (program, _changed(program), command, path)
    if key not in _told:
        try:
            _told[key] = await _asked(program, command, path, seconds)
        except Slow:
            raise
        except Broken as error:
            _told[key] = error
    found = _told[key]
    if isinstance(found, Broken):
        raise Broken(found.message)
    return found


def _changed(program: str) -> int:
    try:
        return Path(program).stat().st_mtime_ns
    except OSError:
        return 0


async def _asked(program: str, command: Command, path: str, seconds: float) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *command.args,
            env={"PATH": path},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise Broken(f"it cannot be started: {error}") from None
    try:
        printed = await asyncio.wait_for(_printed(process), seconds)
    except TimeoutError:
        raise Slow(f"it did not end within {seconds:g} s") from None
    finally:
        await _end(process)
    if printed is None:
        raise Broken(f"it printed more than {_MOST_BYTES} bytes")
    if process.returncode != command.exit_code:
        raise Broken(f"its exit code is {process.returncode}, not {command.exit_code}")
    return printed.decode(errors="replace")


def fits(printed: str, command: Command) -> bool:
    """Whether it is what the command looks for: `python` may be another one than it was years ago."""
    if command.pattern is None:
        return True
    try:
        return compile_pattern(command.pattern).found_in(printed, Budget())
    except ExpressionError as error:
        raise Broken(f"what it prints cannot be compared: {error}") from None


async def _printed(process: Process) -> bytes | None:
    """All of it once the process has ended; None for one that says too much, which may still run."""
    found = b""
    while process.stdout is not None and (part := await process.stdout.read(_MOST_BYTES)):
        found += part
        if len(found) > _MOST_BYTES:
            return None
    await process.wait()
    return found


async def _end(process: Process) -> None:
    """Of one that was not waited for, with all that it has started: the group is its own as long as one is left."""
    if process.stdout is not None and not process.stdout.at_eof():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    # A pipe that is full, or that a stranger holds, would be waited for as well.
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()
