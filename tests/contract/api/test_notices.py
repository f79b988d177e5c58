"""Changes are told on the bus after their commit; no request waits for it."""

import asyncio
import random
from typing import Any

import pytest

from attune.api.notices import BusNotices
from attune.bus.announcer import Announcer
from attune.bus.port import Post
from attune.catalog.rows import RULES, get
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.errors import Conflict
from attune.kernel.ids import Ids
from attune.kernel.messages import MessageType, RuleChanged
from attune.store.database import Database, Tx
from tests.contract.api.asgi import Client
from tests.contract.api.test_rules import NEW


class StuckBus:
    """A broker that takes a message only when it is allowed to."""

    def __init__(self) -> None:
        self.allowed = asyncio.Event()
        self.published: list[Envelope] = []

    async def post(self, *posts: Post) -> None:
        await self.allowed.wait()
        self.published.extend(envelope for _, envelope in posts)


async def test_a_notice_follows_its_commit_and_waits_for_nobody(
    database: Database, admin: Client
) -> None:
    made = (await admin.post("/api/v1/rules", NEW)).data
    bus: Any = StuckBus()
    announcer = Announcer(bus, SystemClock())
    notices = BusNotices(announcer, Stamp("api", SystemClock(), Ids(random.Random(1))))

    async def tell(tx: Tx, *, fail: bool) -> None:
        notices.rule(tx, MessageType.RULE_UPDATED, await get(tx, RULES, "core.greet"))
        if fail:
            raise Conflict("no")

    await database.run(tell, fail=False)
    with pytest.raises(Conflict):
        await database.run(tell, fail=True)
    assert bus.published == []
    bus.allowed.set()
    await announcer.stop()
    [told] = bus.published
    assert (told.message_type, told.source) == ("rule.updated", "api")
    assert told.items == (RuleChanged(rule_id=made["id"], rule_ref="core.greet"),)
