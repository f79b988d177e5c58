"""Runs cases side by side, round after round, so that what else the machine does hits all of them alike."""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

Work = Callable[[], Awaitable[int]]


@dataclass(frozen=True)
class Case:
    """`work` does a bounded amount of work and returns how many operations that was."""

    name: str
    work: Work
    beside: str | None = None


@dataclass
class Result:
    name: str
    beside: str | None
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Operations a second: the median of the rounds."""
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """Half the distance from the slowest to the fastest round, as a part of the median."""
        return (max(self.rates) - min(self.rates)) / 2 / self.rate


async def measure(cases: Iterable[Case], rounds: int) -> list[Result]:
    """One round to warm up, then `rounds` that count, all cases in each."""
    cases = list(cases)
    results = [Result(case.name, case.beside) for case in cases]
    for round_number in range(rounds + 1):
        for case, result in zip(cases, results, strict=True):
            start = time.perf_counter()
            operations = await case.work()
            elapsed = time.perf_counter() - start
            if round_number:
                result.rates.append(operations / elapsed)
    return results
