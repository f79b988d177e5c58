"""How a session with a PostgreSQL server begins."""

import asyncio
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from attune.store.postgresql_session import Session
from attune.store.schema import SCHEMA

_SETTINGS: Final = {
    # Our statements read few rows through an index that has their order. The statistics of small tables that change
    # all the time are never right, and a planner that believes them reads and sorts a whole backlog to take ten rows
    # of it, or a table that was small when the plan was made.
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    # A step awaits nothing but its transaction, so one that is idle was left by a process that is stopped, or cut off
    # without a word: its locks must not hold up all others until it is back. Whoever waits for a lock gives up before
    # that and tries again, so that of such a process nothing is left in the line when the lock is free at last.
    "idle_in_transaction_session_timeout": "5s",
    "lock_timeout": "4s",
    "search_path": SCHEMA,
    "timezone": "UTC",
}


async def connect(url: str, *, timeout: float, command_timeout: float) -> Session:
    """`command_timeout` bounds each round trip."""
    asked = conninfo_to_dict(url).get("options", "")
    ours = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    async with asyncio.timeout(timeout):
        connection = await psycopg.AsyncConnection.connect(
            url, autocommit=True, application_name="attune", options=f"{asked} {ours}".strip()
        )
    return Session(connection, command_timeout)
