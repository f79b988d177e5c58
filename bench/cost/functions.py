"""A profile by function, of the loop's thread and of the store's writer; it slows down what it looks at."""

import cProfile
import io
import pstats
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attune.store.database import Database, Tx
from attune.store.sqlite import SQLiteDatabase
from bench.cost.probes import unseen

Profiles = dict[str, cProfile.Profile]


@asynccontextmanager
async def profiled(database: Database) -> AsyncIterator[Profiles]:
    """A profile counts the thread that enables it: for the writer, a step does."""
    profiles = {"event loop": cProfile.Profile()}

    async def switch(_tx: Tx, *, on: bool) -> None:
        writer = profiles["store's writer"]
        writer.enable() if on else writer.disable()

    if isinstance(database, SQLiteDatabase):
        profiles["store's writer"] = cProfile.Profile()
        with unseen():
            await database.run(switch, on=True)
    profiles["event loop"].enable()
    try:
        yield profiles
    finally:
        profiles["event loop"].disable()
        if isinstance(database, SQLiteDatabase):
            with unseen():
                await database.run(switch, on=False)


def as_text(profiles: Profiles, count: int) -> str:
    parts = []
    for name, profile in profiles.items():
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(count)
        parts.append(f"functions of the {name}\n{text.getvalue().strip()}")
    return "\n\n".join(parts)
