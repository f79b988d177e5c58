"""Following an execution to its end.

The stream of changes only hurries: what counts is read from the execution itself, so a lost event, a broken
stream or a server without one costs a moment.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import httpx2
import msgspec

from attune.client.calls import Call, get, path_of
from attune.client.errors import AttuneApiError, BadAnswer, NotFinished, ServerAway
from attune.client.models import Execution
from attune.client.session import Session
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import TERMINAL, ExecutionStatus

_FIRST_QUIET: Final = 0.5
_LONGEST_QUIET: Final = 20.0  # longer than the server's signs of life are apart
_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 2.0
_GROWTH: Final = 1.5


class Watch:
    """One execution on its way. `timeout` is in seconds; None waits for ever."""

    def __init__(
        self,
        session: Session,
        execution: ExecutionId,
        *,
        timeout: float | None = None,
        on_status: Callable[[ExecutionStatus], None] = lambda _status: None,
    ) -> None:
        self._session = session
        self._id = execution
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._on_status = on_status
        self._last: ExecutionStatus | None = None
        self._has_stream = True

    async def until_finished(self) -> Execution:
        quiet, delay = _FIRST_QUIET, _FIRST_DELAY
        while True:
            execution = await self._through_stream(quiet) if self._has_stream else None
            if execution is None:
                execution = await self.look()
            if execution.is_finished:
                return execution
            if self._left() <= 0:
                raise self._too_late(execution)
            if not self._has_stream:
                await self._session.transport.sleep(self._within(delay))
            quiet, delay = min(quiet * 2, _LONGEST_QUIET), min(delay * _GROWTH, _LONGEST_DELAY)

    async def look(self) -> Execution:
        execution = await self._session.run(get(path_of("executions", self._id), Execution))
        self._saw(execution.status)
        return execution

    async def _through_stream(self, quiet: float) -> Execution | None:
        """The execution if it has ended before the stream began; else None, when there is reason to look again.

        The stream is open before the first look, so that no change falls between the two. What the server
        sends before it listens itself is lost all the same: hence the first silence is a short one.
        """
        quiet = self._within(quiet)
        try:
            async with self._session.events(_changes(self._id), quiet) as events:
                execution = await self.look()
                if execution.is_finished:
                    return execution
                async for event in events:
                    if self._ends(event) or self._left() < quiet:
                        break
        except (AttuneApiError, BadAnswer):
            self._has_stream = False
        except ServerAway:
            pass
        return None

    def _ends(self, event: httpx2.ServerSentEvent) -> bool:
        change = _change(event)
        if change is None or change.entity_id not in (None, self._id):
            return False
        self._saw(change.status)
        return change.status in TERMINAL

    def _saw(self, status: ExecutionStatus) -> None:
        if status is not self._last:
            self._last = status
            self._on_status(status)

    def _left(self) -> float:
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()

    def _within(self, seconds: float) -> float:
        return max(min(seconds, self._left()), 0.01)

    def _too_late(self, execution: Execution) -> NotFinished:
        return NotFinished(
            f"Execution {self._id} is still {execution.status} after {self._timeout:g} s.",
            execution=self._id,
            status=execution.status,
        )


class _Change(msgspec.Struct, frozen=True):
    status: ExecutionStatus
    entity_id: int | None = None


def _changes(execution: ExecutionId) -> Call[Any]:
    return Call("GET", path_of("executions", "stream"), Any, query={"execution_id": execution})


def _change(event: httpx2.ServerSentEvent) -> _Change | None:
    """None for what is no change of a status: a greeting, a sign of life."""
    try:
        return msgspec.json.decode(event.data, type=_Change)
    except msgspec.MsgspecError:
        return None
