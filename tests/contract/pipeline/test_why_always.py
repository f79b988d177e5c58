"""Whatever happens to the queues, in whatever order: nobody waits without a reason."""

import random
from typing import Any

import pytest

from attune.catalog.steps.actions import ActionChanges, update_action
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import Gate
from attune.pipeline.queues.looking import lane_view
from attune.pipeline.queues.places import places
from attune.pipeline.queues.steps import lanes_by_id
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import blackout, why


class Scenario:
    """Anything that may happen to queues, in any order."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)
        self.api = bench.new_flow("api", through=False)

    async def act(self) -> None:
        deeds = [self.ask, self.ask, self.ask, self.end, self.start, self.switch]
        deeds += [self.change, self.settings, self.workers, self.time, self.lose]
        await self.chance.choice(deeds)()

    async def ask(self) -> None:
        await self.bench.ask(
            self.chance.choice(["a.one", "a.two", "b.one"]),
            self.chance.randint(1, 3),
            executor=self.chance.choice([7, 8, None]),
            priority=self.chance.choice(list(Priority)),
            flow=self.chance.choice([self.api, self.bench.flow]),
            customer=self.chance.choice(["x", "y"]),
        )

    async def start(self) -> None:
        if handed := await self.handed("x.status = 'scheduled'"):
            await self.bench.start(self.chance.choice(handed))

    async def end(self) -> None:
        if handed := await self.handed("true"):
            seconds = self.chance.choice([None, 1, 2])
            await self.bench.end(self.chance.choice(handed), seconds=seconds)

    async def handed(self, condition: str) -> list[ExecutionId]:
        sql = "SELECT e.execution FROM entry e JOIN execution x ON x.id = e.execution"
        return await self.bench.values(
            ExecutionId, f"{sql} WHERE e.state = 'handed' AND {condition} ORDER BY 1"
        )

    async def switch(self) -> None:
        turn = self.chance.choice([self.bench.flow.pause, self.bench.flow.resume])
        await turn(self.chance.choice(["a.one", "a.two"]), None, "olga")

    async def change(self) -> None:
        limit = self.chance.choice([0, 1, 2, 3])
        quota = {"quota_type": "running_executions", "limit": 1, "per": "identity"}
        fields: list[dict[str, Any]] = [
            {"over": "a.one"},
            {"over": "a"},
            {"concurrency_parameters": self.chance.choice([[], ["customer"]])},
            {"quotas": self.chance.choice([[], [quota]])},
            {"blackouts": self.chance.choice([[], blackout(self.bench, 30)])},
            {"rate_limit": {"max_executions": 2, "window_seconds": 20}},
        ]
        await self.bench.change(concurrency_limit=limit, **self.chance.choice(fields))

    async def settings(self) -> None:
        await self.bench.set(
            max_concurrent_executions=self.chance.choice([None, 1, 4]),
            ageing_seconds=self.chance.choice([None, 5]),
        )

    async def workers(self) -> None:
        await self.bench.execute(
            "UPDATE worker SET capacity = :n", n=self.chance.choice([1, 3, 99])
        )

    async def lose(self) -> None:
        """What the worker has goes to it again, with another attempt."""
        hand = await self.bench.come("hand", 99)
        await self.bench.flow.take_back(LostWorker(hand.id, hand.name, False), "was lost")

    async def time(self) -> None:
        self.bench.step(self.chance.uniform(0, 20))
        if self.chance.random() < 0.5:
            await self.bench.flow.open_gates()


async def listed(bench: Bench) -> dict[ExecutionId, int | None]:
    """The positions that the lists of the queues show."""
    found: dict[ExecutionId, int | None] = {}
    for ref in ("a.one", "a.two", "b.one"):
        page = await bench.database.read(places, ref, None, None, 10_000, 0)
        found |= {one.execution: one.position for one in page.items}
    return found


async def check_what_is_told_is_what_is_decided(bench: Bench) -> None:
    """The gates of each lane, read without a lock, are those that an admission finds under it."""

    async def both(tx: Tx, lane: LaneId) -> tuple[list[Gate], list[Gate]]:
        now = bench.clock.now()
        told = (await lane_view(tx, lane, now)).gates(now)
        lanes = await lanes_by_id(tx, [lane], bench.flow.terms.queue, now)
        return told, await lanes.gates(lanes.held.lanes[lane])

    for lane in await bench.values(LaneId, "SELECT id FROM lane ORDER BY id"):
        told, decided = await bench.database.run(both, lane)
        assert told == decided


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_nobody_ever_waits_without_a_reason(bench: Bench, seed: int) -> None:
    for ref in ("a.one", "a.two", "b.one"):
        changes = ActionChanges(max_retries=9)
        await bench.database.run(update_action, ref, changes, bench.clock.now())
    await bench.policy(concurrency_limit=1)
    scenario = Scenario(bench, seed)
    told = 0
    for _ in range(25):
        for _ in range(5):
            await scenario.act()
        for execution, position in (await listed(bench)).items():
            found = await why(bench, execution)
            assert (found.waiting, found.position) == (True, position)
            assert found.first_blocker is not None
            assert all(gate.is_closed and gate.text for gate in found.blockers)
            assert found.next
            assert found.history[-1].until is None
            told += 1
        await check_what_is_told_is_what_is_decided(bench)
        for execution in await scenario.handed("true"):
            assert (await why(bench, execution)).waiting is False
    assert told > 50
