"""The HTTP server as a part: it binds before it starts, so that a port in use is told in one sentence."""

import asyncio
import socket
from contextlib import AbstractContextManager, nullcontext

import uvicorn
from starlette.types import ASGIApp

from attune.kernel.errors import InvalidSettings
from attune.services.http_protocol import LARGEST_HEAD, HttpProtocol


class _Server(uvicorn.Server):
    """Signals are the process's business, not the server's; and it tells when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


class HttpServer:
    name = "http server"

    def __init__(self, app: ASGIApp, host: str, port: int, *, grace: int = 10) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._grace = grace
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens; the real port once started, also when 0 asked for any."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def start(self) -> asyncio.Task[None]:
        listener = self._bind()
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=HttpProtocol,
            ws="none",
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_graceful_shutdown=self._grace,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name=self.name)
        await self._server.listening.wait()
        return self._task

    async def stop(self) -> None:
        task, self._task = self._task, None
        if self._server is not None and task is not None:
            self._server.should_exit = True
            await task

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError as error:
            listener.close()
            raise InvalidSettings(
                f"Cannot listen on {self.address}: {error.strerror}."
                " Choose another server.port (--port), or stop what uses it.",
                field="server.port",
            ) from error
        return listener
