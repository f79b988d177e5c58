"""Grants are kept in the process, and dropped when they change."""

import asyncio
from typing import Any

import pytest

from attune.catalog.rows import PERMISSION_SETS, TOPIC, change, get
from attune.identities.grant_book import GrantBook
from attune.identities.model import Caller, TokenType
from attune.kernel.ids import IdentityId
from attune.store.database import Database, Tx
from harness.waiting import NotInTime
from tests.contract.api.world import World
from tests.contract.identities.rows import NOW

CALLER = Caller(
    identity=IdentityId(1),
    login="x",
    token_type=TokenType.ACCESS,
    permission_set_refs=("x.set",),
)
READ = {"resource": "keys", "actions": ["read"]}


@pytest.fixture
def reads(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the steps that read the database."""
    found: list[str] = []
    read = database.read

    async def counted(step: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(step.__name__)
        return await read(step, *args, **kwargs)

    monkeypatch.setattr(database, "read", counted)
    return found


async def test_once_warm_nothing_is_asked_of_the_database(
    database: Database, world: World, reads: list[str]
) -> None:
    heard = asyncio.Event()
    database.listen(TOPIC, lambda _key: heard.set())
    await world.permission_set("x.set", READ)
    await asyncio.wait_for(heard.wait(), 30)
    book = GrantBook(database)
    for _ in range(3):
        assert (await book.rights_of(CALLER)).allows("keys", "read")
    assert len(reads) == 1


async def test_a_change_of_the_catalog_is_seen_by_every_book(
    database: Database, world: World
) -> None:
    await world.permission_set("x.set", READ)
    books = [GrantBook(database), GrantBook(database)]
    for book in books:
        assert (await book.rights_of(CALLER)).may_ever("keys", "read")

    async def narrow(tx: Tx) -> None:
        await change(
            tx, PERMISSION_SETS, await get(tx, PERMISSION_SETS, "x.set"), {"grants": []}, NOW
        )

    await database.run(narrow)
    for book in books:
        await _until_gone(book)


async def _until_gone(book: GrantBook) -> None:
    """A wake takes a moment from commit to listener on PostgreSQL; each question lets the loop turn."""
    for _ in range(1000):
        rights = await book.rights_of(CALLER)
        if not rights.may_ever("keys", "read"):
            return
        await book._database.read(_turn)
    raise NotInTime("the book kept grants that are gone")


async def _turn(tx: Tx) -> int:
    return await tx.one(int, "SELECT 1")
