"""The roles of a process, and `up`, which is all of them in one.

A role of its own needs PostgreSQL and RabbitMQ: several processes share neither an SQLite file nor a bus
that lives in memory.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from attune.api.app import create_app
from attune.api.health import Health
from attune.bus.opening import bus_from
from attune.bus.port import Bus
from attune.dead_letters.keeper import DeadLetterKeeper
from attune.identities.accounts import Accounts
from attune.identities.administrator import FirstAdministrator
from attune.identities.opening import accounts_from
from attune.kernel.clock import Clock, SystemClock
from attune.kernel.errors import InvalidSettings
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings
from attune.services.connections import BusPart, DatabasePart
from attune.services.core_pack import CorePack
from attune.services.http import HttpServer
from attune.services.part import Part
from attune.services.process import Process
from attune.services.secrets import with_secrets
from attune.store.database import Database
from attune.store.opening import database_from

_EXTRA_GRACE: Final = 10.0  # on top of what a worker may take to finish, to close connections


class Role(StrEnum):
    API = "api"
    EXECUTOR = "executor"
    WORKER = "worker"
    SENSOR = "sensor"


@dataclass(frozen=True)
class Base:
    """What every role stands on."""

    settings: Settings
    clock: Clock
    database: Database
    bus: Bus
    accounts: Accounts

    def parts(self) -> list[Part]:
        url = self.settings.database_url
        upgrade = self.settings.embedded
        return [
            DatabasePart(self.database, url, self.clock, upgrade=upgrade),
            BusPart(self.bus, self.clock),
        ]


def everything(settings: Settings, ready: Callable[[str], None]) -> Process:
    """All roles in one process; `ready` gets the address when it can be used."""
    base = _base(settings)
    server = _http_server(base)
    parts = [*base.parts(), *_executor_parts(base), *_founding_parts(base), server]
    return _process("attune", base, parts, lambda: ready(server.address))


def role(role: Role, settings: Settings) -> Process:
    _check_shared(role, settings)
    base = _base(settings)
    match role:
        case Role.API:
            parts: list[Part] = [*_founding_parts(base), _http_server(base)]
        case Role.EXECUTOR:
            parts = _executor_parts(base)
        case Role.WORKER | Role.SENSOR:
            parts = []
    return _process(role, base, [*base.parts(), *parts])


def _process(
    name: str, base: Base, parts: list[Part], ready: Callable[[], None] = lambda: None
) -> Process:
    grace = base.settings.worker.shutdown_timeout + _EXTRA_GRACE
    return Process(name, parts, grace=grace, ready=ready)


def _base(settings: Settings) -> Base:
    clock = SystemClock()
    source = random.SystemRandom()
    ids = Ids(source)
    settings = with_secrets(settings, ids)
    database = database_from(settings, clock, source)
    return Base(
        settings=settings,
        clock=clock,
        database=database,
        bus=bus_from(settings.message_queue, clock, source),
        accounts=accounts_from(settings, database, clock, ids),
    )


def _founding_parts(base: Base) -> list[Part]:
    """In this order, and before anyone can register: the administrator holds a permission set of the core pack."""
    return [
        CorePack(base.settings, base.database, base.clock),
        FirstAdministrator(base.accounts, base.settings.security),
    ]


def _http_server(base: Base) -> HttpServer:
    app = create_app(Health(base.database, base.bus), base.accounts)
    return HttpServer(app, base.settings.server.host, base.settings.server.port)


def _executor_parts(base: Base) -> list[Part]:
    return [DeadLetterKeeper(base.bus, base.database, base.clock)]


def _check_shared(role: Role, settings: Settings) -> None:
    if settings.embedded:
        raise InvalidSettings(
            f"`attune {role}` is one process of several, and SQLite belongs to one:"
            " set database.url to PostgreSQL, or run everything with `attune up`.",
            field="database.url",
        )
    if settings.message_queue.url is None:
        raise InvalidSettings(
            f"`attune {role}` talks to other processes: set message_queue.url to RabbitMQ.",
            field="message_queue.url",
        )
