"""The story of one execution's wait, told by rows of the log. Pure.

When attempts before the last began, and which of them were lost, is on record; nobody waits while one runs.
"""

from collections import deque
from collections.abc import Sequence
from datetime import datetime

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Delayed,
    Dropped,
    Item,
    Joined,
    Left,
    Refused,
    Returned,
    Went,
)


class Waited(msgspec.Struct, frozen=True):
    """A stretch of waiting for one thing; `until` is null for the one that lasts."""

    reason: GateName
    since: datetime
    until: datetime | None = None


class Logged(msgspec.Struct, frozen=True):
    """A decision as far as one execution is concerned: `items` is null where it is not named."""

    at: datetime
    reason: GateName | None
    items: tuple[Item, ...] | None = None


class Run(msgspec.Struct, frozen=True):
    """An attempt before the last. One that was lost left no word in the log, and its execution waits on since then."""

    started_at: datetime | None
    ended_at: datetime
    lost: bool


class WaitStory:
    """Told row by row; stretches that follow each other with the same reason are one.

    `moved_at` is when it went to another lane, which is `moved_to`; `rests_until` when the delay ends for which it left,
    `over` that it left the last one.
    """

    def __init__(self, execution: ExecutionId, runs: Sequence[Run] = ()) -> None:
        self._execution = execution
        self._starts = {run.ended_at: run.started_at for run in runs}
        self._losses = deque(run for run in runs if run.lost)
        self._stretches: list[Waited] = []
        self._queued = False
        self.moved_at: datetime | None = None
        self.moved_to: LaneId | None = None
        self.rests_until: datetime | None = None
        self.over = False

    def tell(self, row: Logged) -> None:
        self.lose_until(row.at)
        for item in self._own(row):
            self._tell_item(item, row.at)
        if self._queued:
            self._begin(row.reason or GateName.TURN, row.at)

    def comes_from_elsewhere(self, row: Logged) -> bool:
        """Whether it enters the lane by this row, from another one in which its story goes on before."""
        own = self._own(row)
        return any(
            isinstance(item, Came) or (isinstance(item, Returned) and item.origin is not None)
            for item in own
        )

    def lose_until(self, at: datetime) -> None:
        """Of attempts that were lost up to then: it waited until the start, and again since the loss.

        Where nobody saw a start, how long it had waited for that worker is not known.
        """
        while self._losses and self._losses[0].ended_at <= at:
            lost = self._losses.popleft()
            last = self._stretches[-1] if self._stretches else None
            if last is None or (last.reason, last.until) != (GateName.WORKER, None):
                continue
            self._stretches.pop()
            if lost.started_at is not None:
                until = max(lost.started_at, last.since)
                self._stretches.append(msgspec.structs.replace(last, until=until))
            self._stretches.append(Waited(GateName.WORKER, max(lost.ended_at, last.since)))

    def _own(self, row: Logged) -> list[Item]:
        items = row.items or ()
        return [item for item in items if getattr(item, "execution", None) == self._execution]

    def begin_unless_told(self, reason: GateName, since: datetime) -> None:
        """For one that waits although the log does not tell of it."""
        if not self._stretches or self._stretches[-1].until is not None:
            self._begin(reason, since)

    def end(self, at: datetime) -> None:
        """It waits no longer."""
        if self._stretches and self._stretches[-1].until is None:
            last = self._stretches[-1]
            self._stretches[-1] = msgspec.structs.replace(last, until=max(at, last.since))

    def waits(self) -> list[Waited]:
        """Without those that took no time."""
        found: list[Waited] = []
        for one in self._stretches:
            if one.until == one.since:
                continue
            same = found and (found[-1].reason, found[-1].until) == (one.reason, one.since)
            since = found.pop().since if same else one.since
            found.append(Waited(one.reason, since, one.until))
        return found

    def _tell_item(self, item: Item, at: datetime) -> None:
        match item:
            case Joined(reason=None) | Admitted() | Came(held=True):
                self._queued = False
                self._begin(GateName.WORKER, at)
            case Joined() | Came() | Returned():
                self._queued, self.over, self.rests_until = True, False, None
            case Delayed():
                self._queued, self.rests_until = False, item.until
                self.end(self._starts.get(at) or at)
                self._begin(GateName.DELAY, at)
            case Went():
                self.moved_at, self.moved_to, self._queued = at, item.to, False
            case Left() | Refused() | Dropped():
                self.over, self._queued, self.rests_until = True, False, None
                if not (isinstance(item, Left) and item.held):  # then its wait ended at its start
                    self.end(at)
            case _:
                pass

    def _begin(self, reason: GateName, at: datetime) -> None:
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.until is None:
            if last.reason is reason:
                return
            self.end(at)
            at = max(at, last.since)
        self._stretches.append(Waited(reason, at))
