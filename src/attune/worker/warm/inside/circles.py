"""Objects that hold each other, let go of after each run, at the price of what the run has made."""

from __future__ import annotations

import gc
from types import ModuleType

from attune.worker.warm.inside import ending

_YOUNGEST, _YOUNGER, _ALL = range(3)
_MOST_RUNS = 100


class Circles:
    """Objects that outlive a look for circles are looked at less often. All that a run made is still young if no look
    but ours took place, which the interpreter's count of them tells."""

    def __init__(self) -> None:
        self._looks: tuple[int, ...] = ()

    def empty(self, main: ModuleType) -> None:
        """As `ending.empty` does."""
        _, *looks = gc.get_count()
        if tuple(looks) != self._looks or looks[-1] > _MOST_RUNS:
            ending.empty(main)
            return
        gc.collect(_YOUNGEST)
        ending.clear(main)
        gc.collect(_YOUNGER)

    def settle(self) -> None:
        """Before a run. After a look at all the count is 0, also if it was the run's own; so it is made another."""
        if gc.get_count()[_ALL] == 0:
            gc.collect(_YOUNGER)
        self._looks = gc.get_count()[1:]
