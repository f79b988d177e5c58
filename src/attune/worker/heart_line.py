"""How a heartbeat reaches the database from its thread, whatever has become of the last connection."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Database, Step

T = TypeVar("T")
P = ParamSpec("P")


class Line(Protocol):
    async def run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Commit the step, or raise within a bound. A call that failed leaves the next one unharmed."""

    async def close(self) -> None:
        """Let go, without waiting for what does not answer."""


class OwnLine:
    """A database for heartbeats alone, made anew after any failure: a connection that hangs can be neither
    used nor closed in time, so it is left behind. `patience` is in seconds."""

    def __init__(self, make: Callable[[], Database], patience: float) -> None:
        self._make = make
        self._patience = patience
        self._database: Database | None = None
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._in_time(self._run(step, *args, **kwargs))
        except Exception:
            self._drop()
            raise

    async def close(self) -> None:
        self._drop()
        if self._left_behind:
            await asyncio.wait(set(self._left_behind), timeout=self._patience)

    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._database is None:
            self._database = self._make()
            await self._database.open()
        return await self._database.run(step, *args, **kwargs)

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """A cancelled statement may wait for its server as long as the statement would: it is not waited for."""
        task = asyncio.create_task(work)
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if done:
            return task.result()
        task.cancel()
        self._leave_behind(task)
        raise DatabaseUnavailable(f"The database did not answer within {self._patience:g} s.")

    def _drop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            self._leave_behind(asyncio.create_task(database.close()))

    def _leave_behind(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        """Whatever it came to was told when it was left behind."""
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()


class SharedLine:
    """SQLite answers in the loop that opened it, so the step goes through that loop. Nothing is lost by it:
    those who judge a silence there live in the same loop."""

    def __init__(self, database: Database, patience: float) -> None:
        self._database = database
        self._patience = patience
        self._home = asyncio.get_running_loop()

    async def run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._home.is_closed():
            raise DatabaseUnavailable("The loop that has the database is gone.")
        work = self._database.run(step, *args, **kwargs)
        asked = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._home))
        try:
            async with asyncio.timeout(self._patience):
                return await asked
        except TimeoutError:
            raise DatabaseUnavailable(
                f"The database did not answer within {self._patience:g} s."
            ) from None

    async def close(self) -> None:
        """It belongs to others."""
