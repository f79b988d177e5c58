"""Bounds the time and the memory of one evaluation.

The language has no loops, so the work that its source can ask for is bounded by the source's length. What is
left are operations whose cost grows with the data; each of them pays here before it starts, in units of
about one byte made or read.
"""

from attune.expressions.errors import TooCostly

LIMIT = 1 << 24
"""Enough for several results of the largest size that is kept; spent in under a second at worst."""

ITEM = 16
"""An item that a list or an object refers to."""

NEW_TEXT = 64
"""A string is at least this large, however short it reads."""

DEPTH = 64
"""How deep source and data may nest where they are walked; far below Python's own limit."""


class Budget:
    """What an evaluation may still spend; one budget serves a whole template or condition."""

    __slots__ = ("left",)

    def __init__(self, limit: int = LIMIT) -> None:
        self.left = limit

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooCostly("this would take more time or memory than one evaluation may")
