"""The decision log: what a transaction decided in one lane, written in that transaction.

One row holds everything that one transaction did in one lane, in its order, so the log costs one row for many
executions. `number` counts the rows of a lane without a gap. Whoever replays them knows who waited, who held a slot
and what the limit was at every moment, and can prove that order and limits held.
"""

from datetime import datetime
from typing import Any

import msgspec

from attune.kernel.ids import ExecutionId, LaneId, PoolId

SYSTEM = LaneId(0)


def pool_log(pool: PoolId) -> LaneId:
    """Under which number a pool's decisions stand among those of the lanes."""
    return LaneId(-pool)


class Joined(msgspec.Struct, frozen=True, tag="joined", array_like=True):
    """An execution took its place in the lane. `reason` is what it waits for; null if it was admitted at once."""

    execution: ExecutionId
    sequence: int
    band: int
    reason: str | None = None


class Admitted(msgspec.Struct, frozen=True, tag="admitted", array_like=True):
    """It got a slot. `passed_over` is the oldest sequence that still waits although it came before; `rule` says why.

    Rules: "band" (a higher band goes first) and "ageing" (waiting has raised it).
    """

    execution: ExecutionId
    sequence: int
    band: int
    passed_over: int | None = None
    rule: str | None = None


class Left(msgspec.Struct, frozen=True, tag="left", array_like=True):
    """It ended. `held` tells whether it had a slot, which is free now."""

    execution: ExecutionId
    sequence: int
    band: int
    held: bool


class Refused(msgspec.Struct, frozen=True, tag="refused", array_like=True):
    """It was turned away, by method cancel, a full queue or a quota that is used up; it never joined, or left again."""

    execution: ExecutionId | None
    gate: str
    text: str


class Reprioritized(msgspec.Struct, frozen=True, tag="priority", array_like=True):
    """`sequence` is 0 for one that rests and keeps no place."""

    execution: ExecutionId
    sequence: int
    before: int
    after: int
    by: str | None = None


class Paused(msgspec.Struct, frozen=True, tag="paused", array_like=True):
    by: str | None = None


class Resumed(msgspec.Struct, frozen=True, tag="resumed", array_like=True):
    by: str | None = None


class LimitChanged(msgspec.Struct, frozen=True, tag="limit", array_like=True):
    """`why` is for people: a policy that changed, or what an adaptive limit has seen."""

    before: int | None
    after: int | None
    why: str


class Came(msgspec.Struct, frozen=True, tag="came", array_like=True):
    """It moved here from another lane of its action, because the policy groups them otherwise now."""

    execution: ExecutionId
    sequence: int
    band: int
    held: bool


class Went(msgspec.Struct, frozen=True, tag="went", array_like=True):
    """It moved to another lane of its action; older rows do not say to which."""

    execution: ExecutionId
    sequence: int
    band: int
    held: bool
    to: LaneId | None = None


class Delayed(msgspec.Struct, frozen=True, tag="delayed", array_like=True):
    """Its attempt failed: the slot is free, and it stands in no line until then."""

    execution: ExecutionId
    sequence: int
    band: int
    until: datetime


class Returned(msgspec.Struct, frozen=True, tag="returned", array_like=True):
    """Its delay is over: it stands again where it stood before, or, by its rule, behind all others.

    `origin` is the lane that it left, where that is another one: then it stands behind all others.
    """

    execution: ExecutionId
    sequence: int
    band: int
    reason: str
    origin: LaneId | None = None


class Dropped(msgspec.Struct, frozen=True, tag="dropped", array_like=True):
    """It ended while its delay lasted: it held nothing, and comes back no more."""

    execution: ExecutionId
    band: int


class Handed(msgspec.Struct, frozen=True, tag="handed", array_like=True):
    """In the log of the whole system, kept while it has a cap of its own: a worker got it."""

    execution: ExecutionId
    band: int
    lane: LaneId
    worker: int


class Counted(msgspec.Struct, frozen=True, tag="counted", array_like=True):
    """In the log of a pool: how many more slots a lane holds of it. `admitted` is false for a lane that was moved."""

    lane: LaneId
    change: int
    admitted: bool


Item = (
    Joined
    | Admitted
    | Left
    | Refused
    | Reprioritized
    | Paused
    | Resumed
    | LimitChanged
    | Came
    | Went
    | Delayed
    | Returned
    | Dropped
    | Handed
    | Counted
)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The row. Counts and limit are the lane's before and after; `reason` is what its head waits for afterwards."""

    lane: LaneId
    number: int
    at: datetime
    active_before: int
    active_after: int
    queue_length: int
    max_concurrent: int | None
    reason: str | None
    items: tuple[Item, ...]


def encoded(items: list[Item]) -> bytes:
    return msgspec.json.encode(items)


def decoded(items: Any) -> tuple[Item, ...]:
    return msgspec.convert(items, tuple[Item, ...])
