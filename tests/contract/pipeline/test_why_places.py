"""Where an execution stands, when it will probably start, and what it costs to ask."""

from pathlib import Path

import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.ahead import queued_ahead
from attune.pipeline.queues.looking import lane_view
from attune.pipeline.queues.model import Waiter
from attune.pipeline.why.steps import Explainer
from attune.store.database import Tx
from harness.backlog import Backlog
from harness.control_plane import ControlPlane
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.reads import Reads
from tests.contract.pipeline.whys import enforcer, names, why

G = GateName


class TestPositions:
    async def test_they_follow_bands_and_then_age_behind_those_with_a_slot(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        api = bench.new_flow("api", through=False)
        [ready] = await bench.ask(flow=api)
        [low] = await bench.ask(priority=Priority.LOW, flow=api)
        bench.step(10)
        normal, next_normal = await bench.ask(count=2, flow=api)
        [high] = await bench.ask(priority=Priority.HIGH, flow=api)
        in_order = [ready, high, normal, next_normal, low]
        assert [(await why(bench, one)).position for one in in_order] == [1, 2, 3, 4, 5]
        await bench.set(ageing_seconds=4)
        [critical] = await bench.ask(priority=Priority.CRITICAL, flow=api)
        aged = [ready, critical, low, high, normal, next_normal]
        assert [(await why(bench, one)).position for one in aged] == [1, 2, 3, 4, 5, 6]

    async def test_each_group_has_its_own_slots_and_positions(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        x1, x2, x3 = await bench.ask(count=3, customer="x")
        y1, y2 = await bench.ask(count=2, customer="y")
        assert (await why(bench, x3)).position == 2
        found = await why(bench, y2)
        assert (found.position, found.blockers[0].holders) == (1, (y1,))
        assert found.next == (
            f'the one execution that holds a slot of a.one {{"customer":"y"}} must end: {y1}'
        )
        assert (await why(bench, x2)).blockers[0].holders == (x1,)

    async def test_a_long_queue_is_counted_from_its_nearer_end(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=0)
        ids = await bench.ask(count=20)
        await bench.ask(count=2, priority=Priority.LOW)
        lane = LaneId((await bench.lane()).id)

        async def place(tx: Tx, number: int) -> int | None:
            view = await lane_view(tx, lane, bench.clock.now())
            sql = "SELECT execution, band, sequence, enqueued_at FROM entry WHERE execution = :id"
            one = await tx.one(Waiter, sql, id=ids[number])
            return await queued_ahead(tx, view.lane, one, most=6)

        places = [await bench.database.read(place, number) for number in range(20)]
        assert places[:6] == [0, 1, 2, 3, 4, 5]
        assert places[6:15] == [None] * 9
        assert places[15:] == [15, 16, 17, 18, 19]


class TestTheEstimate:
    async def test_it_comes_from_recent_run_times_and_those_ahead(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        past = await bench.ask(count=5)
        for one in past:
            await bench.end(one, seconds=20)
        runs, first, second = await bench.ask(count=3)
        await bench.start(runs)
        bench.step(5)
        found = [(await why(bench, one)).estimate for one in (first, second)]
        assert [each and (each.p50_seconds, each.p90_seconds) for each in found] == [
            (15, 15), (35, 35),
        ]  # fmt: skip

    async def test_before_anything_ran_nothing_is_said(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        [_, waits_on] = await bench.ask(count=2)
        assert (await why(bench, waits_on)).estimate is None


async def test_asking_does_not_even_clear_the_past_starts_of_a_rate(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1, rate_limit={"max_executions": 1, "window_seconds": 5})
    first, second = await bench.ask(count=2)
    await bench.end(first)
    bench.step(60)
    starts = "SELECT count(*) FROM admission"
    assert await bench.value(int, starts) == 1
    assert (await why(bench, second)).first_blocker is G.TURN
    assert names(await enforcer(bench).enforce("a.one")) == [G.TURN]
    assert await bench.value(int, starts) == 1


async def test_to_ask_the_first_of_a_long_queue_reads_none_of_the_others(
    migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, where a plan can go wrong."""
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with ControlPlane(load_settings(variables)) as plane:
        backlog = Backlog(plane)
        await backlog.open()
        await backlog.grow(10_000)
        await backlog.settle()
        explainer = Explainer(backlog.flow.terms, backlog.flow.definitions)
        first = "SELECT execution FROM entry WHERE state = 'queued' ORDER BY sequence LIMIT 1"
        head = ExecutionId(await plane.value(int, first))
        reads = Reads(monkeypatch)
        found = await plane.database.read(explainer.why, head, plane.clock.now())
        assert (found.position, found.first_blocker) == (1, G.CONCURRENCY)
        assert found.blockers[0].holders == tuple(backlog.held)
        assert {scan.table for scan in reads.scans} >= {"entry", "lane", "decision", "worker"}
        assert reads.above(200) == []
