"""Output on its way to those who follow it: gathered for a moment, then written for many executions at once."""

import asyncio
from typing import Final

import structlog

from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError
from attune.kernel.ids import ExecutionId
from attune.store.database import Database
from attune.worker.handoffs import Chunk, keep_output
from attune.worker.model import Stream
from attune.worker.output import OnOutput

_INTERVAL: Final = 0.2
_STOP_SECONDS: Final = 2.0

_log = structlog.get_logger()

Key = tuple[ExecutionId, int, Stream]


class LiveOutput:
    """An action that ends within the first interval writes nothing here: its result has all of it.

    Nothing is lost where the database is away: the result comes later, and comes whole.
    """

    name = "live output"

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: dict[Key, list[str]] = {}
        self._written: dict[Key, int] = {}
        self._task: asyncio.Task[None] | None = None

    def of(self, execution: ExecutionId, attempt: int) -> OnOutput:
        def on_output(stream: Stream, text: str) -> None:
            self._waiting.setdefault((execution, attempt, stream), []).append(text)
            if self._task is None:
                self._task = asyncio.create_task(self._write_soon(), name=self.name)

        return on_output

    def forget(self, execution: ExecutionId, attempt: int) -> bool:
        """Whether something was written, now that the execution has ended."""
        if not self._waiting and not self._written:
            return False
        keys: list[Key] = [(execution, attempt, stream) for stream in Stream]
        for key in keys:
            self._waiting.pop(key, None)
        written = [self._written.pop(key, None) for key in keys]
        return any(each is not None for each in written)

    async def stop(self) -> None:
        """A write that hangs in a database that is away is not waited for."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_STOP_SECONDS)

    async def _write_soon(self) -> None:
        try:
            while True:
                await self._clock.sleep(_INTERVAL)
                if not self._waiting:
                    return
                await self._write()
        finally:
            self._task = None

    async def _write(self) -> None:
        waiting, self._waiting = self._waiting, {}
        chunks = [self._chunk(key, "".join(texts)) for key, texts in waiting.items()]
        try:
            await self._database.run(keep_output, chunks)
        except AttuneError as error:
            _log.warning("Live output was not written.", error=str(error))

    def _chunk(self, key: Key, text: str) -> Chunk:
        begins_at = self._written.get(key, 0)
        self._written[key] = begins_at + len(text.encode())
        execution, attempt, stream = key
        return Chunk(execution, stream, attempt, begins_at, text)
