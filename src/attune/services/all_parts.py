"""Every role in one process, and what only such a process has: the demo pack, and a way in without logging in."""

from collections.abc import Callable

from attune.services.api_parts import execution_feed, founding_parts, http_server
from attune.services.base import Base
from attune.services.demo import DemoPack
from attune.services.executor_parts import executor_parts
from attune.services.http import HttpServer
from attune.services.local_access import LocalAccess
from attune.services.part import Part
from attune.services.process import Process
from attune.services.worker_parts import worker_part


def process(base: Base, ready: Callable[[str], None], *, demo: bool) -> Process:
    """`ready` gets the address."""
    flow = base.flow("attune")
    feed = execution_feed(base)
    server = http_server(base, flow, feed)
    worker = worker_part(base, lambda: server.address)
    parts: list[Part] = [
        *base.parts(),
        *founding_parts(base),
        *([DemoPack(base.settings, base.database, base.clock)] if demo else []),
        worker,
        *executor_parts(base, flow),
        server,
        feed,
        *_local_access(base, server),
    ]
    return base.process("attune", parts, lambda: ready(server.address))


def _local_access(base: Base, server: HttpServer) -> list[Part]:
    """Only where this process is the whole installation: on servers that others share everybody logs in."""
    if not base.settings.embedded:
        return []
    tokens, data_dir = base.accounts.tokens, base.settings.data_dir
    return [LocalAccess(base.database, base.clock, tokens, data_dir, lambda: server.address)]
