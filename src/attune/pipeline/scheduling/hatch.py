"""The short way from a hand-over to a worker of the same process: what was written need not be read again."""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.scheduling.hand_off import HandOff

Key = tuple[ExecutionId, int]

_KEPT_AT_MOST: Final = 10_000


class Hatch:
    """A hand-off lies here after its commit, until its message comes. One that is not here any more is in the rows.

    Nobody outside the process sees it, so it holds parameters, which no message does.
    """

    def __init__(self) -> None:
        self._worker: WorkerId | None = None
        self._kept: OrderedDict[Key, HandOff] = OrderedDict()

    def open(self, worker: WorkerId) -> None:
        """For this worker; nothing lies here for any other."""
        self._worker = worker

    def close(self) -> None:
        self._worker = None
        self._kept.clear()

    def put(self, worker: WorkerId, hand_off: HandOff) -> None:
        if worker == self._worker:
            self._kept[hand_off.execution, hand_off.attempt] = hand_off
            if len(self._kept) > _KEPT_AT_MOST:
                self._kept.popitem(last=False)

    def take(self, keys: Iterable[Key]) -> Collection[HandOff]:
        """Those of these that are here, once."""
        found = (self._kept.pop(key, None) for key in keys)
        return [one for one in found if one is not None]
