"""How long a worker may be sure that nobody has given it up for lost, and given its work to others."""

from datetime import datetime
from typing import Final

_SAFE: Final = 2 / 3  # of the silence that means loss


class Assurance:
    """`stale` is the silence, in seconds, that means loss; `doubt` how long a hand-off from before a loss may seem good.

    Told of a beat in one thread, asked in another.
    """

    def __init__(self, stale: float, doubt: float, monotonic: float, now: datetime) -> None:
        self._enough = stale * _SAFE
        self._doubt = doubt
        self._last = monotonic, now
        self._sure_from = monotonic

    def beaten(self, monotonic: float, now: datetime, *, was_lost: bool) -> None:
        """A beat was written that began then. The doubt is noted first: nobody may see the beat without it."""
        if was_lost or self._silence(monotonic, now) >= self._enough:
            self._sure_from = monotonic + self._doubt
        self._last = monotonic, now

    def holds(self, monotonic: float, now: datetime) -> bool:
        """Whether nobody can have taken back a hand-off whose lease has not run out."""
        return self._silence(monotonic, now) < self._enough and monotonic >= self._sure_from

    def _silence(self, monotonic: float, now: datetime) -> float:
        """By either clock: one stands still while a machine is suspended, the other may be set back."""
        began, at = self._last
        return max(monotonic - began, (now - at).total_seconds())
