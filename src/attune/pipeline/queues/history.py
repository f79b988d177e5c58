"""What an execution has waited for, and for how long, from the decisions of its lanes.

The log tells when it joined, what the head of its lane waited for meanwhile, and when it was admitted; from then on it
waited for a worker. The row of its joining is found by its time, what follows by number. Of a wait with very many
decisions the first `_ROWS` in each lane are looked at.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Delayed,
    Item,
    Joined,
    Left,
    Refused,
    Returned,
    Went,
)
from attune.store.database import Tx

_ROWS: Final = 20_000
_MOVES: Final = 20
_BEFORE: Final = timedelta(seconds=1)
_AFTER: Final = timedelta(seconds=10)
# PostgreSQL writes a blank after a comma, SQLite none.
_ENTERED: Final = """
    SELECT d.lane, d.number FROM decision d JOIN lane l ON l.id = d.lane
     WHERE d.at >= :since AND d.at <= :until AND l.action_ref = :ref AND d.lane <> :left
       AND (d.items::text LIKE :spaced OR d.items::text LIKE :dense)
     ORDER BY d.at LIMIT 1
"""
_STORY: Final = """
    SELECT d.at, d.reason, CASE WHEN d.mine THEN d.items END AS items
      FROM (SELECT number, at, reason, items, lag(reason) OVER (ORDER BY number) AS before,
                   (items::text LIKE :spaced OR items::text LIKE :dense) AS mine
              FROM decision
             WHERE lane = :lane AND number >= :first AND number < :last AND at <= :until) d
     WHERE d.mine OR d.reason IS DISTINCT FROM d.before ORDER BY d.number
"""


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


class _Place(msgspec.Struct, frozen=True):
    lane: LaneId
    number: int


class WaitStory:
    """Told row by row; stretches that follow each other with the same reason are one.

    `moved_at` is when it went to another lane, `over` that it left the last one.
    """

    def __init__(self, execution: ExecutionId) -> None:
        self._execution = execution
        self._stretches: list[Waited] = []
        self._queued = False
        self.moved_at: datetime | None = None
        self.over = False

    @property
    def is_queued(self) -> bool:
        """Whether the log ends with it waiting for a slot."""
        return self._queued

    def tell(self, row: Logged) -> None:
        for item in row.items or ():
            if getattr(item, "execution", None) == self._execution:
                self._tell_item(item, row.at)
        if self._queued:
            self._begin(row.reason or GateName.TURN, row.at)

    def again(self, at: datetime) -> None:
        """A worker lost it: how long it had waited for that one is not known any more."""
        self._drop_last(GateName.WORKER)
        self._begin(GateName.WORKER, at)

    def begin_unless_told(self, reason: GateName, since: datetime) -> None:
        """For one that waits although the log does not tell of it."""
        if not self._stretches or self._stretches[-1].until is not None:
            self._begin(reason, since)

    def forget_worker(self) -> None:
        """For one that began more than once: only its last start is known."""
        self._drop_last(GateName.WORKER)

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
            same = found and found[-1].reason is one.reason
            since = found.pop().since if same else one.since
            found.append(Waited(one.reason, since, one.until))
        return found

    def _tell_item(self, item: Item, at: datetime) -> None:
        match item:
            case Joined(reason=None) | Admitted() | Came(held=True):
                self._queued = False
                self._begin(GateName.WORKER, at)
            case Joined() | Came() | Returned():
                self._queued, self.over = True, False
            case Delayed():
                self._queued = False
                self._begin(GateName.DELAY, at)
            case Went():
                self.moved_at, self._queued = at, False
            case Left() | Refused():
                self.over, self._queued = True, False
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

    def _drop_last(self, reason: GateName) -> None:
        if self._stretches and self._stretches[-1].reason is reason:
            self._stretches.pop()


async def wait_story(
    tx: Tx, execution: ExecutionId, action_ref: str, created: datetime, until: datetime
) -> WaitStory:
    """`until` is when it ended, or now. Nothing is told of one whose joining is not in the log any more."""
    story = WaitStory(execution)
    left, word = LaneId(0), "joined"
    since, latest = created - _BEFORE, created + _AFTER
    for _ in range(_MOVES):
        place = await _entered(tx, execution, action_ref, word, left, since, latest)
        if place is None:
            break
        _told(story, await _rows(tx, execution, place, until + _AFTER))
        if story.moved_at is None:
            break
        left, word, since, latest = place.lane, "came", story.moved_at, story.moved_at
    return story


def _told(story: WaitStory, rows: Iterable[Logged]) -> None:
    """Up to where it left the lane."""
    story.moved_at = None
    for row in rows:
        story.tell(row)
        if story.over or story.moved_at is not None:
            return


async def _entered(
    tx: Tx,
    execution: ExecutionId,
    action_ref: str,
    word: str,
    left: LaneId,
    since: datetime,
    until: datetime,
) -> _Place | None:
    return await tx.first(
        _Place,
        _ENTERED,
        ref=action_ref,
        left=left,
        since=since,
        until=until,
        spaced=f'%"{word}", {execution},%',
        dense=f'%"{word}",{execution},%',
    )


async def _rows(tx: Tx, execution: ExecutionId, place: _Place, until: datetime) -> list[Logged]:
    return await tx.all(
        Logged,
        _STORY,
        lane=place.lane,
        first=place.number,
        last=place.number + _ROWS,
        until=until,
        spaced=f'%", {execution},%',
        dense=f'%",{execution},%',
    )
