"""Whatever comes, runs, ends, is cancelled or lost: no window of starts holds more than its maximum, and all start."""

import asyncio
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attune.catalog.steps.actions import NewAction, create_action
from attune.kernel.configuration import load_settings
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.proofs import prove

S = ExecutionStatus
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from([1, 3, 7, 10])),
        st.tuples(st.sampled_from(["start", "end", "cancel"]), st.integers(0, 5)),
        st.tuples(st.just("lose"), st.just(0)),
    ),
    min_size=4,
    max_size=25,
)


class Script:
    """One action under one rate. `starts` are all that there were, of every attempt."""

    def __init__(self, bench: Bench, action_ref: str) -> None:
        self.bench = bench
        self.action_ref = action_ref
        self.begun: dict[ExecutionId, datetime] = {}
        self.starts: list[datetime] = []

    async def take(self, word: str, number: int) -> None:
        await getattr(self, word)(number)
        await self.bench.flow.open_gates()

    async def ask(self, number: int) -> None:
        await self.bench.ask(self.action_ref, number)

    async def wait(self, seconds: int) -> None:
        self.bench.step(seconds)

    async def start(self, number: int) -> None:
        for one in (await self._held(begun=False))[number : number + 1]:
            await self.bench.start(one)
            self._began(one, self.bench.clock.now())

    async def end(self, number: int) -> None:
        """One that was never seen to run began half a second ago at most."""
        for one in (await self._held())[number : number + 1]:
            if one not in self.begun:
                self._began(one, self.bench.clock.now())
            began = self.begun.pop(one)
            word = await self.bench.word(one, S.COMPLETED, began)
            await self.bench.complete(word)

    async def cancel(self, number: int) -> None:
        for one in (await self._held(begun=False))[number : number + 1]:
            await self.bench.end(one, seconds=None, status=S.CANCELLED)

    async def lose(self, _number: int) -> None:
        """The worker is lost, and what it held goes to it again, to begin anew."""
        hand = WorkerId(await self.bench.value(int, "SELECT min(id) FROM worker"))
        await self.bench.flow.take_back(LostWorker(hand, "hand", cordoned=False), "was lost")
        self.begun.clear()

    def _began(self, one: ExecutionId, at: datetime) -> None:
        self.begun[one] = at
        self.starts.append(at)

    async def _held(self, *, begun: bool = True) -> list[ExecutionId]:
        found = await self.bench.running(self.action_ref)
        return found if begun else [one for one in found if one not in self.begun]


async def check(bench: Bench, ref: str, most: int, steps: list[tuple[str, int]]) -> None:
    new = NewAction(ref=ref, pack_ref="a", label=ref, max_retries=10_000)
    await bench.database.run(create_action, new, bench.clock.now())
    window = timedelta(seconds=10)
    rate = {"max_executions": most, "window_seconds": 10}
    await bench.policy(f"{ref}_rate", over=ref, rate_limit=rate)
    script = Script(bench, ref)
    for word, number in steps:
        await script.take(word, number)
    for _ in range(100):
        if not await bench.running(ref) and not await bench.waiting(ref):
            break
        await script.take("end", 0)
        await script.take("wait", 3)
    assert await bench.waiting(ref) == []
    starts = sorted(script.starts)
    for first, last in zip(starts, starts[most:], strict=False):
        assert last - first >= window
    await bench.drop(f"{ref}_rate")


def test_no_window_of_starts_holds_more_and_nobody_waits_for_ever(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path_factory.mktemp("rates"))}
    numbers = count()

    with asyncio.Runner() as runner:
        bench = Bench(load_settings(environ))
        runner.run(bench.__aenter__())

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(most=st.integers(1, 3), steps=STEPS)
        def holds(most: int, steps: list[tuple[str, int]]) -> None:
            runner.run(check(bench, f"a.rated{next(numbers)}", most, steps))

        try:
            holds()
            runner.run(prove(bench))
        finally:
            runner.run(bench.__aexit__())
