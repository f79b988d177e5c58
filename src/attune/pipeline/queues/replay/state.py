"""A lane as its log has left it."""

from attune.kernel.ids import ExecutionId
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Decision,
    Item,
    Joined,
    Left,
    LimitChanged,
    Returned,
    Went,
)
from attune.pipeline.queues.replay.line import Line, Place


class LaneState:
    """Who waits, who holds a slot, who rests between two attempts, the limit in force.

    A log may begin when some are in the lane already: these are unseen, and only counted, from what the first row
    says of itself. All of them came before the first who joined in sight, so nobody later is taken for one of them.
    """

    def __init__(self, first: Decision) -> None:
        self.line = Line()
        self.holding: dict[ExecutionId, Place] = {}
        self.resting: dict[ExecutionId, Place] = {}
        self.is_partial = first.number > 1
        self.unseen_holding = first.active_before
        self.unseen_waiting = max(first.queue_length - sum(map(_growth, first.items)), 0)
        self.limit = _limit_before(first)
        self.paused = False
        self.last_sequence = 0
        self._first_joined: int | None = None

    @property
    def active(self) -> int:
        return len(self.holding) + self.unseen_holding

    @property
    def waiting(self) -> int:
        return len(self.line) + self.unseen_waiting

    def place(self, execution: ExecutionId) -> Place | None:
        return self.holding.get(execution) or self.line.get(execution)

    def joined(self, sequence: int) -> None:
        """Somebody took a new place."""
        if self._first_joined is None:
            self._first_joined = sequence
        self.last_sequence = sequence

    def may_be_unseen(self, sequence: int) -> bool:
        return self._first_joined is None or sequence < self._first_joined

    def saw(self, sequence: int) -> None:
        """One of the unseen showed itself."""
        self.last_sequence = max(self.last_sequence, sequence)


def _growth(item: Item) -> int:
    """By how many an item makes the queue longer."""
    match item:
        case Joined(reason=str()) | Came(held=False) | Returned():
            return 1
        case Admitted() | Left(held=False) | Went(held=False):
            return -1
        case _:
            return 0


def _limit_before(row: Decision) -> int | None:
    changes = (item.before for item in row.items if isinstance(item, LimitChanged))
    return next(changes, row.max_concurrent)
