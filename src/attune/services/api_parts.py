"""The parts of a process that serves the REST API."""

from attune.api.app import create_app
from attune.api.execution_feed import ExecutionFeed, feed_queue
from attune.api.health import Health
from attune.api.notices import BusNotices
from attune.api.parts import ApiParts
from attune.catalog.packs import PackInstaller
from attune.identities.administrator import FirstAdministrator
from attune.identities.grant_book import GrantBook
from attune.kernel.envelope import Stamp
from attune.pipeline.flow import Flow
from attune.services.base import Base, source_of
from attune.services.core_pack import CorePack
from attune.services.http import HttpServer
from attune.services.part import Part


def parts(base: Base) -> list[Part]:
    flow = base.flow(source_of("api"), waits=False)
    feed = execution_feed(base)
    return [*founding_parts(base), http_server(base, flow, feed), feed]


def founding_parts(base: Base) -> list[Part]:
    """In this order, and before anyone can register: the administrator holds a permission set of the core pack."""
    return [
        CorePack(base.settings, base.database, base.clock),
        FirstAdministrator(base.accounts, base.settings.security),
    ]


def execution_feed(base: Base) -> ExecutionFeed:
    executions = base.settings.message_queue.exchange
    queue = feed_queue(base.ids.token("api.", size=8), executions)
    return ExecutionFeed(base.database, base.bus, base.clock, queue)


def http_server(base: Base, flow: Flow, feed: ExecutionFeed) -> HttpServer:
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
