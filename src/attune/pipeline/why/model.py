"""What is told of an execution that waits, or did."""

from datetime import datetime

import msgspec

from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import PastAttempt
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.estimate import Estimate
from attune.pipeline.queues.story import Waited


class Obstacle(msgspec.Struct, frozen=True):
    """A gate that is closed, and what would open it: one sentence without a full stop."""

    gate: Gate
    remedy: str


class Limit(msgspec.Struct, frozen=True):
    """So many slots, whose holders have run for so many seconds; null `ahead`: nobody counted them."""

    slots: int
    ahead: int | None
    running: tuple[float, ...] = ()


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What an estimate is made from. `opens_in` seconds nobody goes; null where nobody knows how long.

    `at_least` are the seconds that a rate takes for those ahead.
    """

    limits: tuple[Limit, ...] = ()
    opens_in: float | None = 0.0
    at_least: float = 0.0


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the way at one stage. `ahead` go before it there; null if they are too many to count."""

    obstacles: tuple[Obstacle, ...]
    ahead: int | None
    position: int | None
    outlook: Outlook


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """`position` counts from 1 in its queue, as the list of the queue does; null where it is not known.

    Blockers are in the order in which they have to give way.
    """

    waiting: bool
    position: int | None = None
    blockers: tuple[Gate, ...] = ()
    next: str | None = None
    estimate: Estimate | None = None
    history: tuple[Waited, ...] = ()

    @property
    def first_blocker(self) -> GateName | None:
        return self.blockers[0].name if self.blockers else None


class StatusAt(msgspec.Struct, frozen=True):
    status: ExecutionStatus
    at: datetime


class History(msgspec.Struct, frozen=True, kw_only=True):
    """`statuses` are those whose time the row still tells, of the last attempt; `waits` what it waited for.

    `attempts` are those before the last: they ended without ending the execution.
    """

    attempt: int
    statuses: tuple[StatusAt, ...]
    waits: tuple[Waited, ...]
    attempts: tuple[PastAttempt, ...] = ()
