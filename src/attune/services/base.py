"""What every role stands on."""

import os
import random
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from attune.bus.announcer import Announcer
from attune.bus.opening import bus_from
from attune.bus.port import Bus
from attune.identities.accounts import Accounts
from attune.identities.opening import accounts_from
from attune.kernel.clock import Clock, SystemClock
from attune.kernel.envelope import Stamp
from attune.kernel.ids import Ids
from attune.kernel.settings import QueueBackend, Settings
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Mail
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.scheduling.hatch import Hatch
from attune.pipeline.scheduling.model import Terms
from attune.services.connections import BusPart, DatabasePart
from attune.services.part import Part
from attune.services.process import Process
from attune.services.secrets import with_secrets
from attune.store.database import Database
from attune.store.opening import database_from

_MISSED_BEATS: Final = 3
_EXTRA_GRACE: Final = 10.0  # on top of what a worker may take to finish, to close connections


@dataclass(frozen=True)
class Base:
    settings: Settings
    clock: Clock
    database: Database
    bus: Bus
    announcer: Announcer
    ids: Ids
    accounts: Accounts
    hatch: Hatch = field(default_factory=Hatch)

    def parts(self) -> list[Part]:
        url = self.settings.database_url
        upgrade = self.settings.embedded
        return [
            DatabasePart(self.database, url, self.clock, upgrade=upgrade),
            BusPart(self.bus, self.clock),
            self.announcer,
        ]

    def flow(self, source: str, *, waits: bool = True) -> Flow:
        """`source` is the name under which its messages go out; `waits` is as in its terms."""
        executor = self.settings.executor
        terms = Terms(
            lease=timedelta(seconds=min(executor.scheduled_timeout, executor.worker_queue_ttl)),
            stale=timedelta(seconds=_MISSED_BEATS * self.settings.worker.heartbeat_interval),
            no_worker_grace=timedelta(seconds=executor.no_worker_grace),
            failure_threshold=executor.worker_failure_threshold,
            set_aside=timedelta(seconds=executor.worker_set_aside),
            waits=waits,
            queue=QueueTerms(
                max_queue_length=executor.queue.max_queue_length,
                timeout_seconds=executor.queue.queue_timeout_seconds,
                deferred=executor.queue.backend is QueueBackend.REDIS,
            ),
        )
        stamp = Stamp(source, self.clock, self.ids)
        mail = Mail(self.announcer, stamp, acted_on=terms.queue.deferred)
        flow = Flow(self.database, self.clock, mail, terms, through=True)
        flow.scheduler.hatch = self.hatch
        return flow

    def process(
        self, name: str, parts: Sequence[Part], ready: Callable[[], None] = lambda: None
    ) -> Process:
        grace = self.settings.worker.shutdown_timeout + _EXTRA_GRACE
        return Process(name, parts, grace=grace, ready=ready)


def source_of(role: str) -> str:
    """The name under which the messages of one process of many go out."""
    return f"{role}@{socket.gethostname()}-{os.getpid()}"


def base_from(settings: Settings) -> Base:
    clock = SystemClock()
    source = random.SystemRandom()
    ids = Ids(source)
    settings = with_secrets(settings, ids)
    database = database_from(settings, clock, source)
    bus = bus_from(settings.message_queue, clock, source)
    return Base(
        settings=settings,
        clock=clock,
        database=database,
        bus=bus,
        announcer=Announcer(bus, clock),
        ids=ids,
        accounts=accounts_from(settings, database, clock, ids),
    )
