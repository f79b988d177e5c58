"""Executors that do everything at once: what they leave is proved, and nobody waits for another in a circle."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import asyncpg
import pytest
from structlog.testing import capture_logs

from attune.catalog.steps.policies import PolicyChanges, update_policy
from attune.kernel.clock import SystemClock
from attune.kernel.errors import Conflict, NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.flow import Flow
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.proofs import prove
from tests.contract.pipeline.world import eventually

S = ExecutionStatus
ACTIONS: Final = ("a.one", "a.two", "b.one")
HANDED: Final = "SELECT execution FROM entry WHERE state = 'handed'"
EACH: Final = {"quota_type": "running_executions", "limit": 2, "per": "identity"}
POLICIES: Final[Sequence[dict[str, Any]]] = (
    {"scope_type": "action", "scope_ref": "a.one", "concurrency_limit": 2},
    {"scope_type": "pack", "scope_ref": "a", "concurrency_limit": 3},
    {"scope_type": "pack", "scope_ref": "a", "concurrency_parameters": ["customer"]},
    {"scope_type": "global", "scope_ref": None, "quotas": [EACH]},
    {"scope_type": "global", "concurrency_parameters": ["customer"], "quotas": [EACH]},
)
_WAITING: Final = """
    SELECT 1 FROM pg_locks WHERE NOT granted AND $1 = ANY(pg_blocking_pids(pid)) LIMIT 1
"""
_TAKEN: Final = "The catalog is being changed, or a queue switched."
PLAIN: Final = {"concurrency_limit": 3, "concurrency_parameters": [], "quotas": []}


class Counted(SystemClock):
    """Counts how often a step that met a conflict waited to be tried again."""

    waits = 0

    async def sleep(self, seconds: float) -> None:
        self.waits += 1
        await super().sleep(seconds)


class Chaos:
    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)

    async def run(self, flow: Flow, turns: int) -> None:
        for _ in range(turns):
            await self.one(flow)

    async def one(self, flow: Flow) -> None:
        """Where another one was quicker, nothing happens."""
        often = [self.ask, self.end]
        seldom = [self.change, self.switch, self.reprioritize, self.cancel, self.look]
        with suppress(Conflict, NotFound):
            await self.chance.choice(often * 4 + seldom)(flow)

    async def ask(self, flow: Flow) -> None:
        await self.bench.ask(
            self.chance.choice(ACTIONS),
            self.chance.randint(1, 3),
            executor=self.chance.choice([None, 7, 8]),
            priority=self.chance.choice(list(Priority)),
            flow=flow,
            customer=self.chance.choice(["red", "blue"]),
        )

    async def end(self, flow: Flow) -> None:
        if handed := await self.bench.values(ExecutionId, HANDED):
            one = self.chance.choice(handed)
            word = await self.bench.word(one, S.COMPLETED, self.bench.clock.now())
            await self.bench.complete(word, flow=flow)

    async def change(self, flow: Flow) -> None:
        changes = PolicyChanges(**{**PLAIN, **self.chance.choice(POLICIES)})
        await self.bench.database.run(update_policy, "a.policy", changes, self.bench.clock.now())
        await flow.arrange()

    async def switch(self, flow: Flow) -> None:
        change = self.chance.choice([flow.pause, flow.resume])
        await change(self.chance.choice(ACTIONS), None, "eva")

    async def reprioritize(self, flow: Flow) -> None:
        if waiting := await self.bench.waiting():
            band = self.chance.choice(list(Priority))
            await flow.reprioritize(self.chance.choice(waiting), band, "eva")

    async def cancel(self, flow: Flow) -> None:
        if waiting := await self.bench.waiting():
            await flow.cancel(self.chance.choice(waiting))

    async def look(self, flow: Flow) -> None:
        self.bench.step(0.1)
        await flow.promote()


@pytest.mark.parametrize("seed", [1, 2])
async def test_f1_f4_whatever_executors_do_at_once_order_and_limits_hold_and_all_end(
    bench: Bench, seed: int
) -> None:
    await bench.policy(concurrency_limit=2)
    flows = [bench.new_flow(f"executor {n}", through=True) for n in range(3)]
    chaos = Chaos(bench, seed)
    await asyncio.gather(*(chaos.run(flow, 40) for flow in flows))
    await prove(bench)
    for ref in ACTIONS:
        await bench.flow.resume(ref, None, "eva")
    await bench.flow.promote()
    while handed := await bench.values(ExecutionId, HANDED):
        await bench.end(*handed)
        # One end may let several go, of which its worker gets one; the others are for an executor to hand over.
        await bench.flow.schedule()
    assert await bench.values(str, "SELECT state || ', ' || coalesce(reason, '') FROM entry") == []


@pytest.mark.parametrize("quotas", [[], [EACH]])
async def test_f9_ends_in_several_groups_of_one_policy_never_wait_for_each_other_in_a_circle(
    bench: Bench, quotas: list[dict[str, Any]]
) -> None:
    """A circle would be broken by the database after a second, and the step tried again."""
    await bench.policy(
        over="a", concurrency_limit=1, concurrency_parameters=["customer"], quotas=quotas
    )
    names = ["red", "blue", "green", "black"]
    for number, name in enumerate(names * 2):
        ref = ACTIONS[number // len(names)]
        await bench.ask(ref, 6, customer=name, executor=number % 3)
    flows = [bench.new_flow(f"executor {n}", through=True) for n in range(4)]
    clock = bench.database._clock = Counted()
    while handed := await bench.values(ExecutionId, HANDED):
        ends = [bench.end(one, flow=flow) for one, flow in zip(handed, flows, strict=False)]
        await asyncio.gather(*ends)
    assert await bench.value(int, "SELECT count(*) FROM entry") == 0
    assert clock.waits == 0


@pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
async def test_whoever_makes_a_lane_holds_no_other_while_a_queue_is_switched(bench: Bench) -> None:
    """Who switches has the version of the catalog, and goes on to the lanes."""
    await bench.policy(over="a", concurrency_limit=1, concurrency_parameters=["customer"])
    await bench.ask(customer="red")
    operator = await asyncpg.connect(bench.settings.database_url)
    bench._stack.callback(operator.terminate)
    with capture_logs() as logs:
        async with operator.transaction():
            await operator.fetch("SELECT version FROM attune.catalog_version FOR UPDATE")
            red, blue = (
                Request(action_ref="a.one", parameters={"customer": name})
                for name in ("red", "blue")
            )
            asking = asyncio.create_task(bench.order([red, blue]))
            await eventually(partial(operator.fetchval, _WAITING, operator.get_server_pid()))
            await operator.fetch("SELECT id FROM attune.lane FOR UPDATE")
            assert [one["error"] for one in logs] == [_TAKEN]
        assert len(await asking) == 2
