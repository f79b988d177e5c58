"""Runs cases side by side, round after round, so that what else the machine does hits all of them alike."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from bench.results import RATE, Result


@dataclass(frozen=True)
class Done:
    """What a work took by its own clock: its preparation is left out."""

    operations: int
    seconds: float


class CannotTakePart(Exception):
    """A case that this machine or this contestant cannot do; its text says why, and the others go on."""


Work = Callable[[], Awaitable[int | Done]]


@dataclass(frozen=True)
class Case:
    """`work` does a bounded amount of work and returns how many operations that was."""

    name: str
    work: Work
    beside: str | None = None


@dataclass(frozen=True)
class Gauge:
    """`read` measures several values of one unit at once; each is told as "name, key"."""

    name: str
    unit: str
    read: Callable[[], Awaitable[Mapping[str, float]]]
    beside: str | None = None


def _silently(_text: str) -> None:
    pass


async def measure(
    cases: Iterable[Case | Gauge],
    rounds: int,
    *,
    warm_up: bool = True,
    tell: Callable[[str], None] = _silently,
) -> list[Result]:
    """One round to warm up, then `rounds` that count, all cases in each. `tell` hears what is being measured."""
    cases = list(cases)
    results: dict[str, Result] = {}
    out: set[str] = set()
    for number in range(rounds + warm_up):
        for case in cases:
            if case.name in out:
                continue
            tell(f"round {number + 1} of {rounds + warm_up}: {case.name}")
            try:
                found = await _once(case)
            except CannotTakePart as error:
                out.add(case.name)
                found = [Result(case.name, note=str(error))]
            if number >= warm_up or case.name in out:
                _keep(results, found)
    return list(results.values())


async def _once(case: Case | Gauge) -> list[Result]:
    if isinstance(case, Gauge):
        values = await case.read()
        return [
            Result(
                _named(case.name, key),
                case.unit,
                beside=_named(case.beside, key) if case.beside else None,
                values=[value],
            )
            for key, value in values.items()
        ]
    start = time.perf_counter()
    done = await case.work()
    if isinstance(done, int):
        done = Done(done, time.perf_counter() - start)
    return [Result(case.name, RATE, case.beside, [done.operations / done.seconds])]


def _named(name: str, key: str) -> str:
    return f"{name}, {key}" if key else name


def _keep(results: dict[str, Result], found: Iterable[Result]) -> None:
    for one in found:
        known = results.setdefault(one.name, one)
        if known is not one:
            known.values += one.values
            known.note = known.note or one.note
