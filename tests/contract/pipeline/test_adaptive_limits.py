"""Limits that follow their actions, over each database: judged once by any number of executors, and explained."""

import random
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.ids import LaneId, PolicyId
from attune.kernel.settings import Settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.policies.model import EffectivePolicy
from attune.pipeline.queues.adaptation import AdaptiveConfig, AdaptiveLimits
from attune.pipeline.queues.outcomes import recent_durations
from attune.simulation.clock import ManualClock
from attune.store import migrate
from attune.store.database import Database, Tx
from attune.store.opening import database_from
from tests.contract.pipeline.queue_rows import QueueRows
from tests.contract.pipeline.world import World, eventually

AUTO = EffectivePolicy(
    policy=PolicyId(1), policy_ref="core.auto", scope="action", floor=2, ceiling=50
)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    yield database
    await database.close()


class Plane:
    """A lane, its log, and an executor whose time the test moves."""

    def __init__(self, database: Database) -> None:
        self.clock = ManualClock()
        self.database = database
        self.rows = QueueRows(database, self.clock.now())
        self.changes: list[tuple[int, int, str]] = []
        self.duty = self.executor()

    def executor(self) -> AdaptiveLimits:
        return AdaptiveLimits(self.database, self.clock, self._change)

    async def passes(self, seconds: float = 5) -> None:
        """Time goes on, and the duty has one pass."""
        await self.clock.advance(seconds)
        self.rows.now = self.clock.now()
        await self.duty.run_once()

    async def busy(self, count: int, lane: int = 1, **how: object) -> None:
        """So many ran and ended while others waited and all slots were used."""
        self.rows.now += timedelta(seconds=1)
        limit = await self.value("SELECT max_concurrent FROM lane WHERE id = :id", id=lane)
        held = await self.rows.all_joined(lane, limit, state="handed")
        told = {"seconds": 0.2, "reason": "concurrency", **how}
        await self.rows.ran(lane, count, **told)
        await self.passes()
        await self.rows.ended(*held, lane=lane, status="cancelled")

    async def value(self, sql: str, **values: object) -> int:
        async def ask(tx: Tx) -> int:
            return await tx.one(int, sql, **values)

        return await self.database.read(ask)

    async def execute(self, sql: str, **values: object) -> None:
        async def change(tx: Tx) -> None:
            await tx.execute(sql, **values)

        await self.database.run(change)

    async def written(self) -> list[datetime]:
        """When something was last noted."""

        async def ask(tx: Tx) -> list[datetime]:
            return await tx.all(datetime, "SELECT updated FROM setting")

        return await self.database.read(ask)

    async def known(self) -> int:
        return await self.value("SELECT count(*) FROM setting")

    async def _change(self, lane: LaneId, limit: int, why: str) -> None:
        self.changes.append((lane, limit, why))
        await self.execute(
            "UPDATE lane SET max_concurrent = :limit WHERE id = :id", limit=limit, id=lane
        )


@pytest.fixture
async def plane(database: Database) -> Plane:
    plane = Plane(database)
    await plane.rows.lane(1, most=4, terms=AUTO)
    await plane.passes()
    return plane


async def test_a_limit_rises_while_its_action_is_fast_and_work_waits(plane: Plane) -> None:
    await plane.busy(20)
    [(lane, limit, why)] = plane.changes
    assert (lane, limit) == (1, 6)
    assert why == (
        "raised from 4 to 6: 20 ended, none failed, p50 0.20 s is within 1.2 times 0.20 s"
        " and work waits"
    )


async def test_it_falls_when_many_fail_and_counts_no_cancelled_one(plane: Plane) -> None:
    await plane.busy(30, status="cancelled")
    assert plane.changes == []
    await plane.rows.ran(1, 15, seconds=0.2, reason="concurrency")
    await plane.busy(5, status="failed")
    assert [each[1] for each in plane.changes] == [3]
    assert "20 ended, 5 failed" in plane.changes[0][2]


async def test_a_few_are_kept_for_the_next_pass_and_nothing_is_written_for_them(
    plane: Plane,
) -> None:
    written = await plane.written()
    await plane.busy(6)
    assert plane.changes == []
    assert await plane.written() == written
    await plane.busy(6)
    assert "12 ended" in plane.changes[0][2]


async def test_what_is_judged_is_not_judged_again(plane: Plane) -> None:
    await plane.busy(20, reason=None)
    for _ in range(3):
        await plane.passes()
    assert plane.changes == []
    await plane.busy(6)
    assert plane.changes == []


async def test_what_started_under_the_old_limit_says_nothing_of_the_new_one(plane: Plane) -> None:
    await plane.busy(20)
    await plane.busy(20, seconds=30)
    assert len(plane.changes) == 1


async def test_where_slots_wait_for_workers_it_does_not_rise(plane: Plane) -> None:
    plane.rows.now += timedelta(seconds=1)
    await plane.rows.ran(1, 20, seconds=0.2, reason="concurrency")
    await plane.passes()
    assert plane.changes == []


async def test_where_work_waits_for_another_gate_it_does_not_rise(plane: Plane) -> None:
    await plane.busy(20, reason="rate_limit")
    assert plane.changes == []


async def test_several_executors_judge_the_same_ends_once(plane: Plane) -> None:
    others = [plane.executor() for _ in range(3)]
    await plane.busy(20)
    for other in others:
        await other.run_once()
    assert len(plane.changes) == 1


async def test_an_executor_that_died_before_the_change_leaves_a_limit_that_is_judged_anew(
    plane: Plane,
) -> None:
    await plane.busy(20)
    await plane.execute("UPDATE lane SET max_concurrent = 4")
    await plane.passes()
    await plane.busy(20)
    assert [each[1] for each in plane.changes] == [6, 6]


async def test_a_policy_with_other_bounds_holds_at_the_next_pass(plane: Plane) -> None:
    await plane.execute("DELETE FROM lane")
    await plane.rows.lane(2, most=80, terms=AUTO)
    await plane.passes()
    assert plane.changes == [(2, 50, "lowered from 80 to 50: the policy keeps it between 2 and 50")]


async def test_each_lane_is_judged_by_its_own_ends(plane: Plane) -> None:
    await plane.rows.lane(2, most=4, terms=AUTO)
    await plane.passes()
    await plane.busy(20, lane=2)
    assert [each[0] for each in plane.changes] == [2]


async def test_lanes_with_a_fixed_limit_are_left_alone_and_what_was_known_of_them_is_forgotten(
    plane: Plane,
) -> None:
    assert await plane.known() == 1
    await plane.execute(
        "INSERT INTO setting (name, value, updated) VALUES ('other', '5', :now)",
        now=plane.clock.now(),
    )
    await plane.execute("UPDATE lane SET terms = NULL, policy = NULL")
    await plane.busy(20)
    assert plane.changes == []
    assert await plane.known() == 1


async def test_recent_durations_are_those_of_the_last_that_ran(plane: Plane) -> None:
    await plane.rows.ran(1, 250, seconds=9)
    await plane.rows.ran(1, 50, seconds=2)
    await plane.rows.ran(1, 50, seconds=4, status="failed")
    await plane.rows.ran(1, 10, seconds=1, status="cancelled")
    found = await plane.database.read(recent_durations, LaneId(1))
    assert sorted(found) == [2.0] * 50 + [4.0] * 50 + [9.0] * 90


async def test_with_a_real_worker_it_rises_and_each_change_is_in_the_log(world: World) -> None:
    await world.limit("core.sleep", 1)
    await world.execute(
        "UPDATE policy SET concurrency_limit = NULL, concurrency_floor = 1, concurrency_ceiling = 8"
    )
    await world.execute("UPDATE catalog_version SET version = version + 1")
    flow = world.executor_flow
    duty = AdaptiveLimits(
        world.database, world.clock, flow.change_limit, AdaptiveConfig(interval=0.1)
    )
    request = Request(action_ref="core.sleep", parameters={"seconds": 0.02})
    await world.flow.request(Order((request,) * 200))
    await duty.start()

    async def raised() -> bool:
        return bool(await world.value(int, "SELECT max_concurrent FROM lane") > 1)

    try:
        await eventually(raised)
    finally:
        await duty.stop()
    logged = await world.values(str, "SELECT items::text FROM decision WHERE number > 1")
    assert any("raised from 1 to 2: " in items for items in logged)
    await world.over()
