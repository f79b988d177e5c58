"""Writes to an SQLite file until it is killed, and prints what was acknowledged."""

import asyncio
import sys
from pathlib import Path

from tests.contract.store.world import SQLiteWorld, add


async def write_for_ever(folder: Path) -> None:
    database = SQLiteWorld(folder).database()
    await database.open()
    for n in range(1_000_000):
        await database.run(add, f"n{n}")
        print(f"n{n}", flush=True)  # noqa: T201 - the parent reads it


asyncio.run(write_for_ever(Path(sys.argv[1]).parent))
