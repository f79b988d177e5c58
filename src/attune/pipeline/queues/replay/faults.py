"""What is wrong with an item of the log, in words."""

import msgspec

from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Delayed,
    Joined,
    Left,
    Reprioritized,
    Returned,
    Went,
)
from attune.pipeline.queues.replay.line import Place

Standing = Joined | Came | Admitted | Left | Went | Delayed | Returned | Reprioritized | Place


class Fault(msgspec.Struct, frozen=True):
    """Which rule was broken: a sentence without its beginning, which says where, and without its full stop."""

    text: str
    execution: ExecutionId | None = None
    sequence: int | None = None


def fault_of(one: Standing, text: str) -> Fault:
    return Fault(f"{named(one)} {text}", one.execution, one.sequence)


def named(one: Standing) -> str:
    band = one.before if isinstance(one, Reprioritized) else one.band
    return f"execution {one.execution} (sequence {one.sequence}, {band_word(band)})"


def band_word(band: int) -> str:
    return Priority(band).name if band in {*Priority} else f"band {band}"


def somebody(sequence: int | None) -> str:
    return "nobody" if sequence is None else f"sequence {sequence}"


def limit_word(limit: int | None) -> str:
    return "none" if limit is None else str(limit)
