"""The warm interpreters of a worker: one of each kind that is asked for."""

import asyncio
from typing import Final

import structlog

from attune.worker.warm.kinds import Kind
from attune.worker.warm.server import Server, Unfit

_MOST: Final = 8
_UNFIT_SECONDS: Final = 60.0

_log = structlog.get_logger()


class Servers:
    def __init__(self) -> None:
        self._servers: dict[Kind, asyncio.Task[Server]] = {}
        self._unfit: dict[Kind, float] = {}
        self._leaving: list[Server] = []

    async def get(self, kind: Kind) -> Server:
        """A running one, started now if there is none, or if what is installed has changed. Raise Unfit."""
        task = self._servers.pop(kind, None)
        if task is not None and task.done():
            if self._is_good(task):
                self._servers[kind] = task
                return task.result()
            task = None
        if self._is_unfit(kind):
            raise Unfit
        if task is None:
            task = asyncio.create_task(self._started(kind))
        self._servers[kind] = task
        self._make_room()
        return await asyncio.shield(task)

    async def _started(self, kind: Kind) -> Server:
        server = None
        try:
            server = Server(kind)
            await server.ready()
        except Unfit as error:
            _log.warning("An interpreter cannot be kept warm.", words=kind.words, reason=str(error))
            self._unfit[kind] = asyncio.get_running_loop().time() + _UNFIT_SECONDS
            raise
        except asyncio.CancelledError:
            if server is not None:
                server.close()
            raise
        return server

    def _is_unfit(self, kind: Kind) -> bool:
        """For a while: whatever kept it from starting may pass."""
        now = asyncio.get_running_loop().time()
        self._unfit = {each: until for each, until in self._unfit.items() if until > now}
        return kind in self._unfit

    def _is_good(self, task: asyncio.Task[Server]) -> bool:
        if task.cancelled() or task.exception() is not None:
            return False
        server = task.result()
        if server.is_current():
            return True
        self._leave(server)
        return False

    def _make_room(self) -> None:
        """Those that were asked for the longest ago go first."""
        for kind in list(self._servers)[:-_MOST]:
            task = self._servers.pop(kind)
            task.add_done_callback(self._leave_when_started)

    def _leave_when_started(self, task: asyncio.Task[Server]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._leave(task.result())

    def _leave(self, server: Server) -> None:
        """What it forked still runs, under its care."""
        self._leaving = [each for each in self._leaving if not each.close_if_idle()]
        if not server.close_if_idle():
            self._leaving.append(server)

    async def close(self) -> None:
        """All of them; what they forked is ours then."""
        tasks = list(self._servers.values())
        self._servers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        started = [each.result() for each in tasks if not each.cancelled() and not each.exception()]
        for server in (*started, *self._leaving):
            server.close()
        self._leaving.clear()
