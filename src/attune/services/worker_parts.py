"""The parts of a process that runs actions."""

import os
import socket
from collections.abc import Callable

from attune.kernel.settings import ServerSettings
from attune.services.base import Base
from attune.services.part import Part
from attune.services.worker_part import WorkerBase, WorkerPart


def parts(base: Base) -> list[Part]:
    return [worker_part(base, lambda: _address(base.settings.server))]


def worker_part(base: Base, api_url: Callable[[], str | None]) -> WorkerPart:
    """Embedded, its name stays the same from start to start: so it finds what its last life left behind."""
    settings = base.settings
    named = not settings.embedded or "name" in settings.worker.model_fields_set
    name = settings.worker.name if named else "local"
    return WorkerPart(
        WorkerBase(
            settings=settings,
            flow=base.flow(f"worker:{name}"),
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


def _address(server: ServerSettings) -> str:
    """Where an action on this machine finds the API; a server that listens everywhere listens here."""
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port}"
