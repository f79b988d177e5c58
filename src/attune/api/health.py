"""Whether this process lives, and whether it can do its work."""

from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from attune import __version__
from attune.bus.port import Bus
from attune.kernel.errors import AttuneError
from attune.store.database import Database, Tx

_AWAY: Final[dict[int | str, dict[str, Any]]] = {
    503: {"description": "A server that is needed is away."}
}


@dataclass(frozen=True)
class Health:
    database: Database
    bus: Bus

    async def database_error(self) -> str | None:
        try:
            await self.database.read(_ask)
        except AttuneError as error:
            return error.message
        return None


async def _ask(tx: Tx) -> int:
    return await tx.one(int, "SELECT 1")


def health_routes(health: Health) -> APIRouter:
    routes = APIRouter(prefix="/health", tags=["health"])

    @routes.get("", summary="The process answers")
    @routes.get("/live", summary="The process answers")
    async def live() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/ready", summary="Database and message broker can be used", responses=_AWAY)
    async def ready() -> JSONResponse:
        error = await health.database_error()
        connected = health.bus.connected
        body = {
            "status": "ok" if error is None and connected else "unavailable",
            "database": error or "connected",
            "message_queue": "connected" if connected else "away",
        }
        return JSONResponse(body, status_code=200 if body["status"] == "ok" else 503)

    @routes.get("/detailed", summary="What can be used, and the version", responses=_AWAY)
    async def detailed() -> JSONResponse:
        error = await health.database_error()
        body = {
            "status": "ok" if error is None else "unavailable",
            "database": error or "connected",
            "message_queue": "connected" if health.bus.connected else "away",
            "version": __version__,
        }
        return JSONResponse(body, status_code=200 if error is None else 503)

    return routes
