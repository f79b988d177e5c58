"""What the API stands on, for tests: real parts over one database."""

import random
from pathlib import Path

from attune.api.execution_feed import ExecutionFeed, feed_queue
from attune.api.health import Health
from attune.api.notices import BusNotices, Notices
from attune.api.parts import ApiParts
from attune.bus.announcer import Announcer
from attune.bus.port import Bus
from attune.catalog.packs import PackInstaller
from attune.identities.accounts import Accounts
from attune.identities.grant_book import GrantBook
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Stamp
from attune.kernel.ids import Ids
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Mail
from attune.pipeline.scheduling.model import Terms


def api_parts(accounts: Accounts, bus: Bus, root: Path, notices: Notices | None = None) -> ApiParts:
    ids = Ids(random.Random(2))
    announcer, stamp = Announcer(bus, accounts.clock), Stamp("api", accounts.clock, ids)
    return ApiParts(
        health=Health(accounts.database, bus),
        accounts=accounts,
        grants=GrantBook(accounts.database),
        database=accounts.database,
        clock=accounts.clock,
        ids=ids,
        packs=PackInstaller(accounts.database, SystemClock(), root),
        notices=notices or BusNotices(announcer, stamp),
        flow=Flow(
            accounts.database, accounts.clock, Mail(announcer, stamp), Terms(), through=False
        ),
        feed=ExecutionFeed(accounts.database, bus, accounts.clock, feed_queue("api.test")),
    )
