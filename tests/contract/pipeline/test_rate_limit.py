"""A rate limit is exact: no window of starts ever holds more than its maximum, and its gate opens by itself in time."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

from attune.catalog.steps.actions import ActionChanges, update_action
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.processors.gate_keeper import GateKeeper
from attune.pipeline.processors.woken import DueConfig
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World, eventually

STARTS = "SELECT started_at FROM execution WHERE started_at IS NOT NULL ORDER BY started_at"


def rate(most: int, seconds: float) -> dict[str, float]:
    return {"max_executions": most, "window_seconds": seconds}


def assert_rate(starts: list[datetime], most: int, seconds: float) -> None:
    window = timedelta(seconds=seconds)
    for first, last in zip(starts, starts[most:], strict=False):
        assert last - first >= window


class Counted(GateKeeper):
    """Knows how often it looked."""

    passes = 0

    async def run_once(self) -> None:
        await super().run_once()
        self.passes += 1


async def retried_once(bench: Bench) -> None:
    """The action is tried again after a loss of its worker."""
    changes = ActionChanges(max_retries=1)
    await bench.database.run(update_action, "a.one", changes, bench.clock.now())


async def keeper(bench: Bench) -> Counted:
    config = DueConfig(interval=10_000.0)
    found = Counted(bench.flow, bench.clock.manual, config)
    await found.start()
    bench._stack.push_async_callback(found.stop)
    await eventually(lambda: rested(found, 1))
    return found


async def rested(keeper: Counted, passes: int) -> bool:
    return keeper.passes >= passes and bool(keeper.clock.next_due())  # type: ignore[attr-defined]


async def quiet(bench: Bench, keeper: Counted) -> None:
    """Return when every wake that was sent has been heard and answered, and the keeper rests."""
    heard = asyncio.Event()
    stop = bench.database.listen("a mark", lambda _key: heard.set())

    async def mark(tx: Tx) -> None:
        tx.wake("a mark")

    async def resting() -> bool:
        return await rested(keeper, 1) and not keeper._hurried.is_set()

    passes = -1
    while passes != keeper.passes:
        passes = keeper.passes
        heard.clear()
        await bench.database.run(mark)
        await heard.wait()
        await eventually(resting)
    stop()


async def test_a_limit_of_one_lets_one_start_in_each_window(bench: Bench) -> None:
    await bench.policy(rate_limit=rate(1, 10))
    ids = await bench.ask(count=3)
    assert await bench.running() == ids[:1]
    lane = await bench.lane()
    assert (lane.reason, lane.retry_at) == ("rate_limit", None)
    await bench.start(ids[0])
    await bench.flow.open_gates()
    assert (await bench.lane()).retry_at == bench.clock.now() + timedelta(seconds=10)
    await bench.end(ids[0], seconds=0)
    bench.step(9.999)
    await bench.flow.open_gates()
    assert await bench.waiting() == ids[1:]
    bench.step(0.001)
    await bench.flow.open_gates()
    assert await bench.running() == ids[1:2]


async def test_the_gate_opens_by_itself_at_its_time_and_nobody_polls(bench: Bench) -> None:
    gates = await keeper(bench)
    await bench.policy(rate_limit=rate(2, 60))
    ids = await bench.ask(count=4)
    await bench.start(*ids[:2])
    opens = bench.clock.now() + timedelta(seconds=60)

    async def planned() -> bool:
        return (await bench.lane()).retry_at == opens and gates._next == opens

    await eventually(planned)
    await quiet(bench, gates)
    passes = gates.passes
    await bench.clock.manual.advance(59.9)
    assert (gates.passes, await bench.waiting()) == (passes, ids[2:])
    await bench.clock.manual.advance(0.101)

    async def opened() -> bool:
        return await bench.waiting() == []

    await eventually(opened)
    await quiet(bench, gates)
    assert gates.passes == passes + 1


async def test_an_end_that_tells_the_start_frees_the_window_from_that_start_on(
    bench: Bench,
) -> None:
    """A short action is never seen to run: its start is told with its end."""
    await bench.policy(rate_limit=rate(1, 10))
    ids = await bench.ask(count=2)
    bench.step(4)
    await bench.end(ids[0], seconds=3)
    assert (await bench.lane()).retry_at == bench.clock.now() + timedelta(seconds=7)
    bench.step(7)
    await bench.flow.open_gates()
    assert await bench.running() == ids[1:]


async def test_what_never_started_gives_its_place_back(bench: Bench) -> None:
    await bench.policy(rate_limit=rate(1, 10))
    ids = await bench.ask(count=3)
    await bench.end(ids[0], seconds=None, status=ExecutionStatus.CANCELLED)
    assert await bench.running() == ids[1:2]


async def test_a_window_that_becomes_shorter_or_longer_counts_for_what_waits(bench: Bench) -> None:
    await bench.policy(rate_limit=rate(1, 100))
    ids = await bench.ask(count=3)
    await bench.end(ids[0])
    bench.step(5)
    await bench.change(rate_limit=rate(1, 20))
    assert (await bench.lane()).retry_at == bench.clock.now() + timedelta(seconds=15)
    await bench.change(rate_limit=rate(1, 4))
    assert await bench.running() == ids[1:2]
    await bench.end(ids[1])
    await bench.change(rate_limit=rate(1, 1000))
    assert (await bench.lane()).retry_at == bench.clock.now() + timedelta(seconds=1000)
    await bench.change(rate_limit=rate(2, 3))
    assert await bench.running() == ids[2:]


async def test_a_rate_over_a_pack_counts_the_starts_of_all_its_actions(bench: Bench) -> None:
    await bench.policy(over="a", rate_limit=rate(2, 10))
    ones, twos = await bench.ask("a.one", 2), await bench.ask("a.two", 2)
    others = await bench.ask("b.one", 3)
    assert await bench.running() == [*ones, *others]
    await bench.end(ones[0])
    bench.step(10)
    await bench.flow.open_gates()
    assert await bench.running() == [ones[1], twos[0], *others]


async def test_a_rate_that_was_off_for_a_while_has_lost_no_place(bench: Bench) -> None:
    """Who was admitted under it and ended without it is not counted for ever."""
    await bench.policy(rate_limit=rate(1, 10))
    first = await bench.ask()
    await bench.change(rate_limit=None, concurrency_limit=5)
    await bench.end(*first)
    bench.step(60)
    await bench.change(rate_limit=rate(1, 10))
    second = await bench.ask()
    assert await bench.running() == second


async def test_a_rate_that_comes_while_some_have_a_slot_counts_their_starts(bench: Bench) -> None:
    early = await bench.ask(count=2)
    await bench.policy(rate_limit=rate(2, 10))
    late = await bench.ask()
    assert await bench.waiting() == late
    await bench.start(*early)
    bench.step(10)
    await bench.flow.open_gates()
    assert await bench.waiting() == []


async def test_a_second_attempt_is_a_start_as_well(bench: Bench) -> None:
    """Its worker is lost long after its first start; until the second is known, it counts as if it began now."""
    await retried_once(bench)
    await bench.policy(rate_limit=rate(1, 10))
    first, second = await bench.ask(count=2)
    await bench.start(first)
    bench.step(5)
    api = bench.new_flow("api", through=False)
    hand = await bench.value(int, "SELECT id FROM worker")
    await api.take_back(LostWorker(hand, "hand", cordoned=False), "was lost")
    bench.step(60)
    await bench.flow.open_gates()
    assert await bench.waiting() == [second]
    await bench.flow.schedule()
    await bench.start(first)
    bench.step(9)
    await bench.flow.open_gates()
    assert await bench.waiting() == [second]
    bench.step(1)
    await bench.flow.open_gates()
    assert await bench.waiting() == []


async def test_one_that_lost_its_worker_and_then_its_slot_does_not_stand_in_its_own_way(
    bench: Bench,
) -> None:
    await retried_once(bench)
    await bench.policy(rate_limit=rate(1, 10))
    [only] = await bench.ask()
    await bench.start(only)
    bench.step(20)
    api = bench.new_flow("api", through=False)
    hand = await bench.value(int, "SELECT id FROM worker")
    await api.take_back(LostWorker(hand, "hand", cordoned=False), "was lost")
    await api.pause("a.one", None, "eva")
    assert await bench.waiting() == [only]
    await bench.flow.resume("a.one", None, "eva")
    assert await bench.running() == [only]


async def test_with_real_workers_no_window_of_starts_holds_more(proved: World) -> None:
    await proved.policy("core.rate", over="core.noop", rate_limit=rate(4, 0.3))
    flows = [proved.new_flow(f"executor {n}", through=True) for n in range(2)]
    requests = (Request(action_ref="core.noop"),) * 4
    await asyncio.gather(*(flow.request(Order(requests)) for flow in flows for _ in range(2)))
    await proved.over()
    starts = await proved.values(datetime, STARTS)
    assert len(starts) == 16
    assert_rate(starts, 4, 0.3)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert max(gaps) < timedelta(seconds=5)


async def test_executions_of_one_rate_start_in_their_order(proved: World) -> None:
    await proved.policy("core.rate", over="core.noop", rate_limit=rate(2, 0.1))
    made = await proved.flow.request(Order((Request(action_ref="core.noop"),) * 8))
    await proved.over()
    order = "SELECT id FROM execution ORDER BY started_at, id"
    assert await proved.values(ExecutionId, order) == [one.id for one in made]
