"""When the queues are tidied: at every pass where it is worth it, and less often where it does not help."""

from typing import Any, cast

import sqlalchemy as sa

from attune.pipeline.processors.tidying import Tidying, TidyingConfig
from attune.simulation.clock import ManualClock
from attune.store.database import Database
from attune.store.schema import entry


class Rows:
    """A table with so many dead rows, of which some cannot be taken away."""

    def __init__(self) -> None:
        self.dead = 0
        self.read_by_others = 0
        self.times = 0

    async def tidy(self, table: sa.Table, at_least: int) -> int | None:
        assert table is entry
        if self.dead < at_least:
            return None
        self.times += 1
        self.dead = min(self.dead, self.read_by_others)
        return self.dead


def tidying(rows: Rows) -> Tidying:
    return Tidying(cast(Database, cast(Any, rows)), ManualClock(), TidyingConfig(dead_rows=100))


async def test_it_is_done_at_every_pass_that_finds_enough() -> None:
    rows = Rows()
    duty = tidying(rows)
    for dead, times in ((99, 0), (100, 1), (50, 1), (1000, 2), (100, 3)):
        rows.dead = dead
        await duty.run_once()
        assert rows.times == times


async def test_what_stays_is_not_tried_again_until_there_is_twice_as_much() -> None:
    rows = Rows()
    duty = tidying(rows)
    rows.dead = rows.read_by_others = 1000
    await duty.run_once()
    for dead, times in ((1000, 1), (1999, 1), (1999, 1), (2000, 2)):
        rows.dead = dead
        await duty.run_once()
        assert rows.times == times


async def test_when_the_reader_has_gone_it_is_done_as_before() -> None:
    rows = Rows()
    duty = tidying(rows)
    rows.dead = rows.read_by_others = 1000
    await duty.run_once()
    rows.dead, rows.read_by_others = 2000, 0
    await duty.run_once()
    rows.dead = 100
    await duty.run_once()
    assert (rows.times, rows.dead) == (3, 0)
