"""The short way from a hand-over to its worker: what was just now committed need not be read again.

The rows stay the truth. Whoever takes something here must be sure that nobody has taken it back since.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled
from attune.pipeline.scheduling.hand_off import HandOff

_KEPT_AT_MOST: Final = 10_000


class Hatch(Protocol):
    """For one process: `open` tells which worker it is, if it is one."""

    def open(self, worker: WorkerId, incarnation: str) -> None: ...

    def close(self) -> None: ...

    def put(self, worker: WorkerId, incarnation: str, hand_off: HandOff) -> str | None:
        """After its commit. What is returned goes along with the order, for the `take` of that worker."""

    def take(self, orders: Iterable[ExecutionScheduled]) -> list[HandOff]:
        """Those that came by this way. One that did not is in the rows."""


class Shelf:
    """Where one process is everything: a hand-off lies here until its order comes, and nobody outside sees it."""

    def __init__(self) -> None:
        self._worker: WorkerId | None = None
        self._kept: OrderedDict[tuple[ExecutionId, int], HandOff] = OrderedDict()

    def open(self, worker: WorkerId, incarnation: str) -> None:  # noqa: ARG002 - there is no other process
        self._worker = worker

    def close(self) -> None:
        self._worker = None
        self._kept.clear()

    def put(self, worker: WorkerId, incarnation: str, hand_off: HandOff) -> str | None:  # noqa: ARG002
        if worker == self._worker:
            self._kept[hand_off.execution, hand_off.attempt] = hand_off
            if len(self._kept) > _KEPT_AT_MOST:
                self._kept.popitem(last=False)
        return None

    def take(self, orders: Iterable[ExecutionScheduled]) -> list[HandOff]:
        """Each once."""
        found = (self._kept.pop((one.execution_id, one.attempt), None) for one in orders)
        return [one for one in found if one is not None]
