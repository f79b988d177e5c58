"""Who waits first in a lane: of every band as many as may go, and one more, read through the index that has their order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from attune.kernel.ids import LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.model import Entry
from attune.store.database import Answer, Tx

_COLUMNS: Final = ", ".join(Entry.__struct_fields__)
# What is put into these statements is of our own text.
_FIRSTS: Final = " UNION ALL ".join(
    f"""
    SELECT {_COLUMNS} FROM (
        SELECT {_COLUMNS} FROM entry WHERE lane = :lane AND band = {band:d} AND state = 'queued'
         ORDER BY sequence LIMIT :count) band_{band:d}
"""  # noqa: S608
    for band in Priority
)
_HEADS: Final = f"""
    SELECT {_COLUMNS} FROM entry
     WHERE execution = ANY(ARRAY(
           SELECT (SELECT e.execution FROM entry e
                    WHERE e.lane = l.id AND e.band = b.band AND e.state = 'queued'
                    ORDER BY e.sequence LIMIT 1)
             FROM lane l
            CROSS JOIN (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                        UNION ALL SELECT 4) b
            WHERE l.id = ANY(:lanes::bigint[])))
"""  # noqa: S608
_ALL: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Ahead:
    """`count` of every band were asked for."""

    count: int
    firsts: Answer[Entry]


class NextUp:
    """Under the locks of the lanes."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._ahead: dict[LaneId, _Ahead] = {}

    async def look_ahead(self, lane: LaneId, going: int) -> None:
        """For so many that may go in a moment, along with the statements until then."""
        count = going + 1
        firsts = await self._tx.answer_later(Entry, _FIRSTS, lane=lane, count=count)
        self._ahead[lane] = _Ahead(count, firsts)

    async def of(self, going: Mapping[LaneId, int]) -> dict[LaneId, list[Entry]]:
        """By lane, where anybody waits. So many may go in each."""
        found = {
            one: known for one, count in going.items() if (known := self._foreseen(one, count))
        }
        missing = {one: count for one, count in going.items() if one not in found}
        found |= await self._heads([one for one, count in missing.items() if count == 1])
        for lane, count in missing.items():
            if count > 1:
                found[lane] = await self._firsts(lane, count)
        return found

    def _foreseen(self, lane: LaneId, going: int) -> list[Entry] | None:
        """Once: afterwards some of them no longer wait."""
        ahead = self._ahead.pop(lane, None)
        return ahead.firsts.rows if ahead is not None and going < ahead.count else None

    async def _heads(self, lanes: Sequence[LaneId]) -> dict[LaneId, list[Entry]]:
        """One of every band, who is all that one turn needs, for any number of lanes."""
        heads: dict[LaneId, list[Entry]] = defaultdict(list)
        for one in await self._tx.all(Entry, _HEADS, lanes=sorted(lanes)) if lanes else ():
            heads[one.lane].append(one)
        return heads

    async def _firsts(self, lane: LaneId, going: int) -> list[Entry]:
        return await self._tx.all(Entry, _FIRSTS, lane=lane, count=min(going + 1, _ALL))
