"""What the API stands on. A new area of it adds what it needs here."""

from dataclasses import dataclass

from attune.api.execution_feed import ExecutionFeed
from attune.api.health import Health
from attune.api.notices import Notices
from attune.catalog.packs import PackInstaller
from attune.identities.accounts import Accounts
from attune.identities.grant_book import GrantBook
from attune.kernel.clock import Clock
from attune.kernel.ids import Ids
from attune.pipeline.flow import Flow
from attune.store.database import Database


@dataclass(frozen=True, kw_only=True)
class ApiParts:
    health: Health
    accounts: Accounts
    grants: GrantBook
    database: Database
    clock: Clock
    ids: Ids
    packs: PackInstaller
    notices: Notices
    flow: Flow
    feed: ExecutionFeed
    queue_metrics: bool = True
