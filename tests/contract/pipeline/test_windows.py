"""Execution windows and blackouts: outside them work waits, says until when, and goes on by itself."""

from datetime import UTC, datetime, timedelta
from typing import Any

from attune.pipeline.processors.gate_keeper import GateKeeper
from attune.pipeline.processors.woken import DueConfig
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import eventually

# The bench's time begins on Thursday, 1 January 2026, at midnight UTC.
MORNING = datetime(2026, 1, 1, 9, tzinfo=UTC)
OFFICE: dict[str, Any] = {
    "days": ["mon", "tue", "wed", "thu", "fri"],
    "start": "09:00",
    "end": "17:00",
    "timezone": "UTC",
}


async def test_outside_its_window_everybody_waits_and_the_lane_says_until_when(
    bench: Bench,
) -> None:
    await bench.policy(windows=[OFFICE])
    ids = await bench.ask(count=2)
    lane = await bench.lane()
    assert await bench.waiting() == ids
    assert (lane.reason, lane.retry_at) == ("window", MORNING)


async def test_inside_its_window_nobody_waits_and_what_runs_at_its_end_goes_on(
    bench: Bench,
) -> None:
    await bench.policy(windows=[OFFICE], concurrency_limit=1)
    bench.step(16.9 * 3600)
    ids = await bench.ask(count=2)
    assert await bench.running() == ids[:1]
    bench.step(3600)
    assert await bench.end(ids[0], seconds=3600) == []
    lane = await bench.lane()
    assert (lane.reason, lane.retry_at) == ("window", MORNING + timedelta(days=1))


async def test_the_window_opens_by_itself_and_keeps_the_order(bench: Bench) -> None:
    gates = GateKeeper(bench.flow, bench.clock.manual, DueConfig(interval=1e6))
    await gates.start()
    bench._stack.push_async_callback(gates.stop)
    await bench.policy(windows=[OFFICE], concurrency_limit=1)
    ids = await bench.ask(count=2)

    async def planned() -> bool:
        return gates._next == MORNING and bench.clock.manual.next_due() is not None

    await eventually(planned)
    await bench.clock.manual.advance(9 * 3600 - 1)
    assert await bench.waiting() == ids
    await bench.clock.manual.advance(1.1)

    async def opened() -> bool:
        return await bench.running() == ids[:1]

    await eventually(opened)
    lane = await bench.lane()
    assert (lane.reason, lane.retry_at) == ("concurrency", None)


async def test_a_blackout_closes_a_window_until_its_end(bench: Bench) -> None:
    night = {"from": "2026-01-01T08:00:00Z", "to": "2026-01-01T12:30:00Z"}
    await bench.policy(windows=[OFFICE], blackouts=[night])
    ids = await bench.ask()
    opens = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    assert (await bench.lane()).retry_at == opens
    bench.step(10 * 3600)
    await bench.flow.open_gates()
    assert await bench.waiting() == ids
    bench.step(2.5 * 3600)
    await bench.flow.open_gates()
    assert await bench.running() == ids


async def test_a_policy_that_changes_while_it_is_closed_takes_effect_at_once(bench: Bench) -> None:
    await bench.policy(windows=[OFFICE])
    ids = await bench.ask(count=2)
    await bench.change(windows=[{**OFFICE, "start": "11:00"}])
    assert (await bench.lane()).retry_at == MORNING + timedelta(hours=2)
    await bench.change(windows=[{**OFFICE, "start": "23:00", "end": "01:00", "days": ["wed"]}])
    assert await bench.running() == ids


async def test_a_closed_window_of_one_pack_holds_all_of_its_actions_and_no_other(
    bench: Bench,
) -> None:
    await bench.policy(over="a", windows=[OFFICE], concurrency_limit=5)
    held = [*await bench.ask("a.one"), *await bench.ask("a.two")]
    others = await bench.ask("b.one")
    assert (await bench.running(), await bench.waiting()) == (others, held)
    bench.step(9 * 3600)
    await bench.flow.open_gates()
    assert await bench.waiting() == []


async def test_what_waits_for_several_gates_looks_again_when_the_last_of_them_opens(
    bench: Bench,
) -> None:
    rate = {"max_executions": 1, "window_seconds": 12 * 3600}
    await bench.policy(windows=[OFFICE], rate_limit=rate)
    bench.step(9 * 3600)
    ids = await bench.ask(count=2)
    await bench.end(ids[0])
    assert (await bench.lane()).reason == "rate_limit"
    bench.step(9 * 3600)
    await bench.flow.promote()
    lane = await bench.lane()
    assert (lane.reason, lane.retry_at) == ("window", MORNING + timedelta(days=1))
    bench.step(15 * 3600)
    await bench.flow.open_gates()
    assert await bench.running() == ids[1:]


async def test_with_method_cancel_a_closed_window_makes_wait(bench: Bench) -> None:
    await bench.policy(windows=[OFFICE], concurrency_limit=1, concurrency_method="cancel")
    ids = await bench.ask(count=3)
    assert await bench.waiting() == ids
