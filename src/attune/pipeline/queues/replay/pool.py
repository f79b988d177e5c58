"""What several lanes share: how many slots of it are held, lane by lane, and that none was given above the limit."""

from attune.pipeline.queues.decisions import Counted, Decision
from attune.pipeline.queues.replay.faults import Fault


class PoolReplay:
    def __init__(self, first: Decision) -> None:
        self._active = first.active_before

    def check(self, row: Decision) -> Fault | None:
        """Take a row in; null if it keeps to the rules."""
        if row.active_before != self._active:
            return Fault(
                f"it says that {row.active_before} slots of the pool were held before it,"
                f" but the log up to there leaves {self._active}"
            )
        for item in row.items:
            if not isinstance(item, Counted):
                return Fault("the log of a pool tells of something else than slots")
            if fault := self._count(item, row.max_concurrent):
                return fault
        if row.active_after != self._active:
            return Fault(
                f"it says that {row.active_after} slots of the pool are held after it,"
                f" not {self._active}"
            )
        return None

    def _count(self, item: Counted, limit: int | None) -> Fault | None:
        """Slots that a lane brought along may be too many; then none is given until enough are free."""
        self._active += item.change
        if self._active < 0:
            return Fault(f"lane {item.lane} frees a slot of the pool that nobody holds")
        if item.admitted and limit is not None and self._active > limit:
            return Fault(
                f"lane {item.lane} gets a slot above the limit of {limit} that it shares with others"
            )
        return None
