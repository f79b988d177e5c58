"""The roles of a process, and `up`, which is all of them in one.

A role of its own needs PostgreSQL and RabbitMQ: several processes share neither an SQLite file nor a bus
that lives in memory.
"""

import os
import socket
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from attune.api.app import create_app
from attune.api.execution_feed import ExecutionFeed, feed_queue
from attune.api.health import Health
from attune.api.notices import BusNotices
from attune.api.parts import ApiParts
from attune.catalog.packs import PackInstaller
from attune.identities.administrator import FirstAdministrator
from attune.identities.grant_book import GrantBook
from attune.kernel.envelope import Stamp
from attune.kernel.errors import InvalidSettings
from attune.kernel.settings import ServerSettings, Settings
from attune.pipeline.flow import Flow
from attune.services.base import Base, base_from
from attune.services.core_pack import CorePack
from attune.services.demo import DemoPack
from attune.services.executor_parts import executor_parts
from attune.services.http import HttpServer
from attune.services.local_access import LocalAccess
from attune.services.part import Part
from attune.services.process import Process
from attune.services.worker_part import WorkerBase, WorkerPart

_EXTRA_GRACE: Final = 10.0  # on top of what a worker may take to finish, to close connections


class Role(StrEnum):
    API = "api"
    EXECUTOR = "executor"
    WORKER = "worker"
    SENSOR = "sensor"


def everything(settings: Settings, ready: Callable[[str], None], *, demo: bool = False) -> Process:
    """All roles in one process; `ready` gets the address when it can be used. `demo` loads the demo pack."""
    base = base_from(settings)
    flow = base.flow("attune", through=True)
    feed = _feed(base)
    server = _http_server(base, flow, feed)
    worker = _worker(base, lambda: server.address)
    parts: list[Part] = [
        *base.parts(),
        *_founding_parts(base),
        *([DemoPack(settings, base.database, base.clock)] if demo else []),
        worker,
        *executor_parts(base, flow, beside=[worker.source]),
        server,
        feed,
        *_local_access(base, server),
    ]
    return _process("attune", base, parts, lambda: ready(server.address))


def role(role: Role, settings: Settings) -> Process:
    _check_shared(role, settings)
    base = base_from(settings)
    match role:
        case Role.API:
            flow = base.flow(_source(role), through=False)
            feed = _feed(base)
            parts: list[Part] = [*_founding_parts(base), _http_server(base, flow, feed), feed]
        case Role.EXECUTOR:
            parts = executor_parts(base, base.flow(_source(role), through=True))
        case Role.WORKER:
            parts = [_worker(base, lambda: _address(settings.server))]
        case Role.SENSOR:
            parts = []
    return _process(role, base, [*base.parts(), *parts])


def _local_access(base: Base, server: HttpServer) -> list[Part]:
    """Only where this process is the whole installation: on servers that others share everybody logs in."""
    if not base.settings.embedded:
        return []
    tokens, data_dir = base.accounts.tokens, base.settings.data_dir
    return [LocalAccess(base.database, base.clock, tokens, data_dir, lambda: server.address)]


def _source(role: Role) -> str:
    return f"{role}@{socket.gethostname()}-{os.getpid()}"


def _address(server: ServerSettings) -> str:
    """Where an action on this machine finds the API; a server that listens everywhere listens here."""
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port}"


def _worker(base: Base, api_url: Callable[[], str | None]) -> WorkerPart:
    """Embedded, its name stays the same from start to start: so it finds what its last life left behind."""
    settings = base.settings
    named = not settings.embedded or "name" in settings.worker.model_fields_set
    name = settings.worker.name if named else "local"
    return WorkerPart(
        WorkerBase(
            settings=settings,
            flow=base.flow(f"worker:{name}", through=True),
            bus=base.bus,
            ids=base.ids,
            tokens=base.accounts.tokens,
            name=name,
            host=socket.gethostname(),
            environment=os.environ,
            api_url=api_url,
            asks_versions=True,
            serves_health=not settings.embedded,
        )
    )


def _process(
    name: str, base: Base, parts: list[Part], ready: Callable[[], None] = lambda: None
) -> Process:
    grace = base.settings.worker.shutdown_timeout + _EXTRA_GRACE
    return Process(name, parts, grace=grace, ready=ready)


def _founding_parts(base: Base) -> list[Part]:
    """In this order, and before anyone can register: the administrator holds a permission set of the core pack."""
    return [
        CorePack(base.settings, base.database, base.clock),
        FirstAdministrator(base.accounts, base.settings.security),
    ]


def _feed(base: Base) -> ExecutionFeed:
    executions = base.settings.message_queue.exchange
    queue = feed_queue(base.ids.token("api.", size=8), executions)
    return ExecutionFeed(base.database, base.bus, base.clock, queue)


def _http_server(base: Base, flow: Flow, feed: ExecutionFeed) -> HttpServer:
    app = create_app(_api_parts(base, flow, feed))
    return HttpServer(app, base.settings.server.host, base.settings.server.port)


def _api_parts(base: Base, flow: Flow, feed: ExecutionFeed) -> ApiParts:
    return ApiParts(
        health=Health(base.database, base.bus),
        accounts=base.accounts,
        grants=GrantBook(base.database),
        database=base.database,
        clock=base.clock,
        ids=base.ids,
        packs=PackInstaller(base.database, base.clock, base.settings.data_dir / "packs"),
        notices=BusNotices(base.announcer, Stamp("api", base.clock, base.ids)),
        flow=flow,
        feed=feed,
        queue_metrics=base.settings.executor.queue.enable_metrics,
    )


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
