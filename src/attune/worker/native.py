"""Actions that run inside the worker: the core pack's, by their refs."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from attune.kernel.clock import Clock
from attune.worker.errors import CannotRun

Say = Callable[[str], None]


class NativeEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a native action ended; an exit code other than 0 fails it."""

    exit_code: int = 0
    data: Any = None
    error: str | None = None


class Surroundings(msgspec.Struct, frozen=True):
    """What a native action may use: `say` writes to its standard output."""

    say: Say
    clock: Clock


Native = Callable[[Mapping[str, Any], Surroundings], Awaitable[NativeEnd]]
# For what has nothing to wait for, and so cannot be stopped either.
Instant = Callable[[Mapping[str, Any], Surroundings], NativeEnd]

P = TypeVar("P")


def parameters_as(kind: type[P], parameters: Mapping[str, Any]) -> P:
    """The parameters in their types, numbers also from text; what is null counts as absent."""
    given = {name: value for name, value in parameters.items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise CannotRun(f"The parameters do not fit: {error}.") from None


class EchoParameters(msgspec.Struct, frozen=True):
    message: Any = ""


class NoopParameters(msgspec.Struct, frozen=True):
    message: Any = ""
    exit_code: int = 0


class SleepParameters(msgspec.Struct, frozen=True):
    seconds: float = 1.0
    message: Any = ""


def echo(parameters: Mapping[str, Any], around: Surroundings) -> NativeEnd:
    around.say(_line(parameters_as(EchoParameters, parameters).message))
    return NativeEnd()


def noop(parameters: Mapping[str, Any], around: Surroundings) -> NativeEnd:
    wanted = parameters_as(NoopParameters, parameters)
    if not 0 <= wanted.exit_code <= 255:
        raise CannotRun("The parameter 'exit_code' must be between 0 and 255.")
    if wanted.message != "":
        around.say(_line(wanted.message))
    return NativeEnd(exit_code=wanted.exit_code)


async def sleep(parameters: Mapping[str, Any], around: Surroundings) -> NativeEnd:
    wanted = parameters_as(SleepParameters, parameters)
    if not 0 <= wanted.seconds < float("inf"):
        raise CannotRun("The parameter 'seconds' must be 0 or more.")
    if wanted.message != "":
        around.say(_line(wanted.message))
    await around.clock.sleep(wanted.seconds)
    around.say(f"Slept for {wanted.seconds:g} seconds\n")
    return NativeEnd()


def _line(message: Any) -> str:
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    return f"{text}\n"


CORE: Final[Mapping[str, Native]] = MappingProxyType({"core.sleep": sleep})
INSTANT: Final[Mapping[str, Instant]] = MappingProxyType({"core.echo": echo, "core.noop": noop})
