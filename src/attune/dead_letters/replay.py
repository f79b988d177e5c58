"""Sends dead letters back to where they died, when a person wants that.

First the broker confirms, then the row is marked: a letter that is not marked may have been sent all the same, never
the other way round. A message that dies again is a letter of its own, beside the one that was replayed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog

from attune.bus.port import Bus
from attune.bus.topology import WORKER_QUEUES
from attune.dead_letters.decide import ByType, ToQueue, Way, way_back
from attune.dead_letters.model import Letter, LetterFilters, Refusal, Replayed
from attune.dead_letters.queries import count_letters, find_letter, newest_at, waiting_letters
from attune.dead_letters.steps import mark_replayed
from attune.kernel.clock import Clock
from attune.kernel.errors import BusUnavailable, Conflict, NotFound
from attune.kernel.ids import DeadLetterId, IdentityId
from attune.store.database import Database

MOST_AT_ONCE: Final = 1000
_CHUNK: Final = 50  # letters whose bodies are in memory together

_log = structlog.get_logger()

Planned = dict[str | None, list[tuple[DeadLetterId, Way]]]


@dataclass
class _Tally:
    """`gone` are queues that do not exist: no further letter of theirs is tried."""

    replayed: int = 0
    refused: list[Refusal] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)


class Replayer:
    def __init__(self, bus: Bus, database: Database, clock: Clock) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock

    async def replay(self, id_: DeadLetterId, by: IdentityId) -> Letter:
        """The letter as it is afterwards. `Conflict` where its queue is gone, and where nothing tells its place."""
        letter, tally = await self._found(id_), _Tally()
        await self._deliver([letter], by, tally)
        for refusal in tally.refused:
            raise Conflict(refusal.error, id=id_, queue=letter.queue)
        return await self._found(id_)

    async def replay_many(self, filters: LetterFilters, by: IdentityId, limit: int) -> Replayed:
        """Those that wait, oldest first, `limit` at most. What dies again meanwhile waits for another time."""
        tally = _Tally()
        try:
            await self._walk(filters, by, min(limit, MOST_AT_ONCE), tally)
        except BusUnavailable as error:
            raise BusUnavailable(
                f"The broker went away after {tally.replayed} replayed dead letters: {error.message}",
                replayed=tally.replayed,
            ) from error
        waiting = msgspec.structs.replace(filters, replayed=False)
        return Replayed(
            replayed=tally.replayed,
            refused=tuple(tally.refused),
            remaining=await self._database.read(count_letters, waiting),
        )

    async def _found(self, id_: DeadLetterId) -> Letter:
        letter = await self._database.read(find_letter, id_)
        if letter is None:
            raise NotFound(f"There is no dead letter {id_}.", id=id_)
        return letter

    async def _walk(
        self, filters: LetterFilters, by: IdentityId, limit: int, tally: _Tally
    ) -> None:
        """What dies again meanwhile is newer than all that there were, whatever its id."""
        until, after = await self._database.read(newest_at), 0
        if until is None:
            return
        while max(tally.replayed, len(tally.refused)) < limit:
            letters = await self._database.read(
                waiting_letters,
                filters,
                after=after,
                until=until,
                without=tally.gone,
                limit=min(_CHUNK, limit - tally.replayed),
            )
            if not letters:
                return
            after = letters[-1].id
            await self._deliver(letters, by, tally)

    async def _deliver(self, letters: Iterable[Letter], by: IdentityId, tally: _Tally) -> None:
        """Queue after queue; each is marked before the next is tried, which may fail."""
        for queue, planned in _planned(letters, tally).items():
            ids = [id_ for id_, _ in planned]
            try:
                await self._send(queue, [way for _, way in planned])
            except NotFound:
                tally.gone.add(queue or "")
                tally.refused += [Refusal(id_, _no_queue(queue or "")) for id_ in ids]
                continue
            await self._database.run(mark_replayed, ids, by, self._clock.now())
            tally.replayed += len(ids)
            _log.info("Replayed dead letters.", queue=queue, count=len(ids), by=by)

    async def _send(self, queue: str | None, ways: Sequence[Way]) -> None:
        if queue is None:
            await self._bus.publish(*(way.envelope for way in ways if isinstance(way, ByType)))
        else:
            bodies = [way.body for way in ways if isinstance(way, ToQueue)]
            await self._bus.send_raw(queue, *bodies)


def _planned(letters: Iterable[Letter], tally: _Tally) -> Planned:
    """By the queue to which they go; None stands for the routes of their types."""
    plan: Planned = {}
    for letter in letters:
        try:
            way = way_back(letter.queue, letter.body)
        except Conflict as error:
            tally.refused.append(Refusal(letter.id, error.message))
            continue
        queue = way.queue if isinstance(way, ToQueue) else None
        plan.setdefault(queue, []).append((letter.id, way))
    return plan


def _no_queue(queue: str) -> str:
    whose = " with its worker" if queue.startswith(f"{WORKER_QUEUES}.") else ""
    return f"The queue {queue} is gone{whose}: the message cannot be sent back to it."
