"""The tables and structs that the store's suite works on, and what hides one database from another."""

import asyncio
import random
import sqlite3
from abc import ABC, abstractmethod
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from attune.kernel.clock import SystemClock
from attune.store.database import Database, Tx
from attune.store.postgresql import PostgreSQLDatabase
from attune.store.schema import Id, JsonText, Moment
from attune.store.sqlite import SQLiteDatabase
from harness.postgresql import PostgreSQL
from harness.proxy import FaultProxy

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]

metadata = sa.MetaData()

parcel = sa.Table(
    "parcel",
    metadata,
    sa.Column("id", Id, sa.Identity(), primary_key=True),
    sa.Column("label", sa.Text, unique=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("weight", sa.Integer, sa.CheckConstraint("weight >= 0")),
    sa.Column("fragile", sa.Boolean, nullable=False),
    sa.Column("ratio", sa.Double),
    sa.Column("sent_at", Moment),
    sa.Column("content", JsonText),
    sa.Column("inside", Id, sa.ForeignKey("parcel.id")),
    sa.Column("note", sa.Text, server_default="as usual"),
    sqlite_autoincrement=True,
)


class State(StrEnum):
    PACKED = "packed"
    SENT = "sent"


class Content(msgspec.Struct, frozen=True):
    name: str
    count: int = 1


class Parcel(msgspec.Struct, frozen=True):
    id: int
    label: str | None
    state: State = State.PACKED
    weight: int | None = 0
    fragile: bool = False
    ratio: float | None = None
    sent_at: datetime | None = None
    content: Any = None
    inside: int | None = None
    note: str | None = None


class Label(msgspec.Struct, frozen=True):
    id: int
    label: str | None


async def add(tx: Tx, *labels: str) -> list[int]:
    ids = list(await tx.next_ids(parcel, len(labels)))
    await tx.insert(parcel, [Parcel(i, label) for i, label in zip(ids, labels, strict=True)])
    return ids


async def labels(tx: Tx) -> list[str]:
    return await tx.all(str, "SELECT label FROM parcel ORDER BY id")


class World(ABC):
    """One kind of database with an empty table, and the breaks it can suffer."""

    @abstractmethod
    def database(self) -> Database:
        """A new handle on the same data, not yet open."""

    @abstractmethod
    async def go_away(self) -> None:
        """From now on the database answers nobody."""

    @abstractmethod
    async def come_back(self) -> None: ...

    @abstractmethod
    async def crash_and_restart(self, database: Database) -> Database:
        """The server is killed, or for SQLite its owner lets go without a word; an open handle afterwards."""

    @abstractmethod
    def ddl(self) -> str: ...


class SQLiteWorld(World):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "attune.db"
        self._intruder: sqlite3.Connection | None = None

    def database(self) -> Database:
        return SQLiteDatabase(self.path, SystemClock(), random.Random(1), busy_timeout=0.01)

    async def go_away(self) -> None:
        self._intruder = sqlite3.connect(self.path, isolation_level=None)
        self._intruder.execute("BEGIN EXCLUSIVE")

    async def come_back(self) -> None:
        assert self._intruder is not None
        self._intruder.close()

    async def crash_and_restart(self, database: Database) -> Database:
        await database.close()
        again = self.database()
        await again.open()
        return again

    def ddl(self) -> str:
        return str(sa.schema.CreateTable(parcel).compile(dialect=sqlite.dialect()))


class PostgreSQLWorld(World):
    def __init__(self, server: PostgreSQL, url: str) -> None:
        self.server = server
        self.url = url
        self.proxy = FaultProxy("127.0.0.1", server.port)

    def database(self) -> Database:
        return PostgreSQLDatabase(
            self.proxy.url_for(self.url),
            SystemClock(),
            random.Random(1),
            max_connections=10,
            connect_timeout=2,
            command_timeout=5,
        )

    async def go_away(self) -> None:
        await asyncio.to_thread(self.proxy.cut)

    async def come_back(self) -> None:
        await asyncio.to_thread(self.proxy.heal)

    async def crash_and_restart(self, database: Database) -> Database:
        await asyncio.to_thread(self.server.kill)
        await asyncio.to_thread(self.server.start)
        return database

    def ddl(self) -> str:
        return str(sa.schema.CreateTable(parcel).compile(dialect=_POSTGRESQL))
