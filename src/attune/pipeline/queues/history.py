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
from attune.pipeline.queues.story import Logged, Run, WaitStory
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
     ORDER BY d.at, d.number LIMIT 1
"""
_CAME: Final = """
    SELECT lane, number FROM decision
     WHERE lane = :lane AND number > :after AND at >= :since
       AND (items::text LIKE :spaced OR items::text LIKE :dense)
     ORDER BY number LIMIT 1
"""
_STORY: Final = """
    SELECT d.at, d.reason, CASE WHEN d.mine THEN d.items END AS items
      FROM (SELECT number, at, reason, items, lag(reason) OVER (ORDER BY number) AS before,
                   (items::text LIKE :spaced OR items::text LIKE :dense) AS mine
              FROM decision
             WHERE lane = :lane AND number >= :first AND number < :last AND at <= :until) d
     WHERE d.mine OR d.reason IS DISTINCT FROM d.before ORDER BY d.number
"""
_RUNS: Final = """
    SELECT started_at, ended_at, cause = 'worker_lost' AS lost FROM execution_attempt
     WHERE execution = :id ORDER BY attempt
"""
_RESTS: Final = "SELECT 1 FROM delay WHERE execution = :id"


class _Place(msgspec.Struct, frozen=True):
    lane: LaneId
    number: int


async def wait_story(
    tx: Tx, execution: ExecutionId, action_ref: str, created: datetime, until: datetime
) -> WaitStory:
    """`until` is when it ended, or now. Nothing is told of one whose joining is not in the log any more."""
    story = WaitStory(execution, await tx.all(Run, _RUNS, id=execution))
    left, word = LaneId(0), "joined"
    since, latest = created - _BEFORE, created + _AFTER
    visits: dict[LaneId, int] = {}
    for _ in range(_MOVES):
        if (to := story.moved_to) is not None:
            place = await _came(tx, execution, to, visits.get(to, 0), since)
        else:
            place = await _entered(tx, execution, action_ref, word, left, since, latest)
        if place is None:
            break
        left = place.lane
        visits[left] = place.number
        _told(story, await _rows(tx, execution, place, until + _AFTER))
        if story.moved_at is not None:
            word, since, latest = "came", story.moved_at, story.moved_at
        elif story.rests_until is not None and await tx.first(int, _RESTS, id=execution) is None:
            word, since, latest = "returned", story.rests_until - _BEFORE, until + _AFTER
        else:
            break
    story.lose_until(until)
    return story


def _told(story: WaitStory, rows: Iterable[Logged]) -> None:
    """Up to where it left the lane, or came back to it from another one."""
    story.moved_at = story.moved_to = None
    for number, row in enumerate(rows):
        if number and story.comes_from_elsewhere(row):
            return
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


async def _came(
    tx: Tx, execution: ExecutionId, lane: LaneId, after: int, since: datetime
) -> _Place | None:
    """Into the lane that it went to, for the first time after the last visit there that was told."""
    return await tx.first(
        _Place,
        _CAME,
        lane=lane,
        after=after,
        since=since,
        spaced=f'%"came", {execution},%',
        dense=f'%"came",{execution},%',
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
