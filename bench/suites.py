"""What can be measured, and how often each suite repeats its rounds."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from bench import backlog, bus, contests, expressions, flow, rules, store, worker
from bench.measure import Case, Gauge, measure
from bench.pipeline import cases as pipeline
from bench.results import Result

Cases = Callable[[bool], AbstractAsyncContextManager[Sequence[Any]]]


@dataclass(frozen=True)
class Suite:
    """`quick_rounds` are those of a quick run. What starts real processes warms them up itself."""

    cases: Cases
    rounds: int = 5
    quick_rounds: int = 3
    warm_up: bool = True

    async def run(self, *, quick: bool, rounds: int | None) -> list[Result]:
        wanted = rounds or (self.quick_rounds if quick else self.rounds)
        async with self.cases(quick) as found:
            cases: Sequence[Case | Gauge] = found
            return await measure(cases, wanted, warm_up=self.warm_up, tell=_tell)


def _tell(text: str) -> None:
    """Beside the results, for whoever waits for them."""
    print(text, file=sys.stderr, flush=True)


SUITES: Final[Mapping[str, Suite]] = {
    "store": Suite(store.cases),
    "bus": Suite(bus.cases),
    "expressions": Suite(expressions.cases),
    "rules": Suite(rules.cases),
    "worker": Suite(worker.cases, rounds=3, quick_rounds=1),
    "flow": Suite(flow.cases, rounds=3, quick_rounds=2),
    "backlog": Suite(backlog.cases, rounds=3, quick_rounds=1),
    "pipeline": Suite(pipeline.cases, rounds=3, quick_rounds=1, warm_up=False),
    "peers": Suite(contests.cases, rounds=3, quick_rounds=1, warm_up=False),
}
