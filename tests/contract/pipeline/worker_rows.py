"""A worker's row and history, as tests of its life ask for them."""

from datetime import timedelta

import msgspec

from attune.kernel.ids import WorkerId
from attune.pipeline.workers.beats import beat
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World


class Told(msgspec.Struct, frozen=True):
    event: str
    downtime_seconds: float | None
    text: str | None


async def first(world: World) -> WorkerId:
    """The worker that came first."""
    return WorkerId(await world.value(int, "SELECT min(id) FROM worker"))


async def history(world: World) -> list[Told]:
    """What became of it itself, apart from what it did to executions."""
    sql = """SELECT event, downtime_seconds, text FROM worker_history
              WHERE worker = :worker AND execution IS NULL ORDER BY at, id"""
    return await world.values(Told, sql, worker=await first(world))


async def events(world: World) -> list[str]:
    return [one.event for one in await history(world)]


async def status(world: World) -> str:
    sql = "SELECT status FROM worker WHERE id = :id"
    return str(await world.value(str, sql, id=await first(world)))


async def beat_of(bench: Bench, *, leaving: bool = False) -> timedelta | None:
    worker, now = await first(bench), bench.clock.now()
    return await bench.database.run(beat, worker, "x", now, leaving=leaving)
