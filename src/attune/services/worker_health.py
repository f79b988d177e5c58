"""The worker's /health, which answers from before the worker has come until after it has gone."""

from typing import Final

from attune.kernel.errors import InvalidSettings
from attune.kernel.settings import WorkerSettings
from attune.services.http import HttpServer
from attune.worker.health import STARTING, Health, HealthReport, health_app

_CLOSE_SECONDS: Final = 1  # for whoever asks in the moment of the stop


class HealthServer:
    """`of` is whom it speaks for, once there is one."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.of: Health | None = None
        self._http = HttpServer(
            health_app(self._report),
            settings.health_host,
            settings.health_port,
            grace=_CLOSE_SECONDS,
        )

    @property
    def address(self) -> str:
        return self._http.address

    async def start(self) -> int:
        """The port that it has."""
        try:
            await self._http.start()
        except InvalidSettings as error:
            raise InvalidSettings(
                f"Cannot answer /health on {self.address}: {error.__cause__}."
                " Choose another worker.health_host or worker.health_port; 0 takes a free port.",
                field="worker.health_port",
            ) from error
        return int(self.address.rpartition(":")[2])

    async def stop(self) -> None:
        await self._http.stop()

    async def _report(self) -> HealthReport:
        return STARTING if self.of is None else await self.of.report()
