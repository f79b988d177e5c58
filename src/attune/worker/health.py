"""GET /health: whether this worker can do its work, for those who start and stop it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from attune.bus.port import Bus
from attune.kernel.errors import AttuneError
from attune.pipeline.workers.model import Worker
from attune.store.database import Database, Tx
from attune.worker.heartbeat import Heartbeat
from attune.worker.jobs import Jobs
from attune.worker.service import WorkerService

_PATIENCE: Final = 2.0  # seconds for the database to answer

_JSON: Final = [(b"content-type", b"application/json")]


class HealthReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`problems` is empty for a worker that is well; `running` counts executions."""

    status: str
    worker: str | None = None
    id: int | None = None
    running: int | None = None
    capacity: int | None = None
    heartbeat_age_seconds: float | None = None
    problems: tuple[str, ...] = ()


STARTING: Final = HealthReport(status="starting", problems=("the worker is starting",))


class Health:
    def __init__(
        self,
        worker: Worker,
        service: WorkerService,
        jobs: Jobs,
        heartbeat: Heartbeat,
        database: Database,
        bus: Bus,
    ) -> None:
        self._worker = worker
        self._service = service
        self._jobs = jobs
        self._heartbeat = heartbeat
        self._database = database
        self._bus = bus

    async def report(self) -> HealthReport:
        problems = await self._problems()
        return HealthReport(
            status="unhealthy" if problems else "ok",
            worker=self._worker.name,
            id=self._worker.id,
            running=len(self._jobs),
            capacity=self._worker.capacity,
            heartbeat_age_seconds=round(self._heartbeat.age, 3),
            problems=tuple(problems),
        )

    async def _problems(self) -> list[str]:
        problems = []
        if self._service.is_stopping:
            problems.append("the worker is stopping")
        if self._heartbeat.is_stale:
            problems.append(f"the last heartbeat is {self._heartbeat.age:.1f} s old")
        if not self._bus.connected:
            problems.append("the message broker is away")
        if (error := await self._database_error()) is not None:
            problems.append(error)
        return problems

    async def _database_error(self) -> str | None:
        asking = asyncio.create_task(self._database.read(_ask))
        await asyncio.wait({asking}, timeout=_PATIENCE)
        if not asking.done():
            asking.cancel()
            return f"the database did not answer within {_PATIENCE:g} s"
        error = asking.exception()
        if error is None:
            return None
        return error.message if isinstance(error, AttuneError) else type(error).__name__


async def _ask(tx: Tx) -> int:
    return await tx.one(int, "SELECT 1")


def health_app(report: Callable[[], Awaitable[HealthReport]]) -> ASGIApp:
    """503 with what is wrong, where anything is."""

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await _answer(scope, report)
        await send({"type": "http.response.start", "status": status, "headers": _JSON})
        sent = b"" if scope["method"] == "HEAD" else msgspec.json.encode(body)
        await send({"type": "http.response.body", "body": sent})

    return app


async def _answer(
    scope: Scope, report: Callable[[], Awaitable[HealthReport]]
) -> tuple[int, HealthReport | dict[str, Any]]:
    if scope["path"] != "/health":
        return 404, {"error": "There is only /health here."}
    if scope["method"] not in ("GET", "HEAD"):
        return 405, {"error": "Only GET is answered here."}
    found = await report()
    return (503 if found.problems else 200), found
