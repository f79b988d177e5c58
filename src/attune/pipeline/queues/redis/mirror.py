"""Redis made equal to the database, which is the truth.

Redis may lose everything (a flush, a restart), come back old (a restart from a stale file, a replica that took over)
or miss single changes (a call whose answer was lost). A marker that holds the run id of the server's process tells the
first two; a comparison of counts and heads tells the third. While the marker is missing nobody is served.
"""

from collections.abc import Collection
from typing import Final

import structlog

from attune.kernel.clock import Clock
from attune.kernel.errors import QueueLost
from attune.kernel.ids import ExecutionId, Ids, LaneId
from attune.pipeline.queues.items import PAGE, ItemRow, all_entries, entries_by_id, entries_of
from attune.pipeline.queues.redis.comparison import Comparison
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.lua import PREFIX
from attune.pipeline.queues.redis.mirror_scripts import (
    BEGIN,
    FOLLOW,
    IS_WHOLE,
    LOAD,
    REBUILDING,
    RETIRE,
    SEEN,
    STAGE,
    SWAP,
    VOUCH,
)
from attune.pipeline.queues.redis.queue import lane_word, place_of
from attune.store.database import Database

_OURS: Final = 1
# How long a rebuild of everything stays ours without a sign of life.
_LEASE_MS: Final = 30_000
# After so many attempts a queue that never rests is replaced all the same; what it misses is found later.
_ATTEMPTS: Final = 5
# How long a change may take from its commit to Redis before it counts as missing, in seconds.
_GRACE: Final = 0.5

_log = structlog.get_logger()


class RedisMirror:
    """Looks whether Redis is what the database says, and makes it so. A queue is a lane, or None for the system."""

    def __init__(self, link: RedisLink, database: Database, clock: Clock, ids: Ids) -> None:
        self._link = link
        self._database = database
        self._clock = clock
        self._ids = ids
        self._comparison = Comparison(link, database)

    async def ensure(self) -> bool:
        """Rebuild everything if Redis lost it. False while another process does that."""
        try:
            await self._link.call(IS_WHOLE)
        except QueueLost:
            return await self._load_all(force=0)
        return True

    async def follow(self, executions: Collection[ExecutionId]) -> None:
        """Put these where they stand in the database now; those that stand nowhere are forgotten.

        Two processes that follow one execution may do so in the wrong order, which `repair` finds.
        """
        wanted = sorted(executions)
        for start in range(0, len(wanted), PAGE):
            some = wanted[start : start + PAGE]
            rows = await self._database.read(entries_by_id, some)
            gone = set(some) - {row.execution for row in rows}
            words = [word for one in sorted(gone) for word in (one, "", "", "")]
            await self._link.call(FOLLOW, *_words(rows), *words)

    async def differs(self, lane: LaneId | None) -> bool:
        return bool(await self._comparison.of_these([lane]))

    async def disagreeing(
        self, lanes: Collection[LaneId | None] | None = None
    ) -> list[LaneId | None]:
        """Those of these queues, or of all, that differ now. A change that is on its way counts too."""
        if lanes is None:
            return list(await self._comparison.of_all())
        return list(await self._comparison.of_these(lanes))

    async def repair(self) -> list[LaneId | None]:
        """Rebuild what differs, and does so in the same way a moment later: what was on its way has arrived then."""
        before = await self._comparison.of_all()
        if not before:
            return []
        await self._clock.sleep(_GRACE)
        after = await self._comparison.of_these(list(before))
        wrong = [lane for lane, difference in after.items() if before[lane] == difference]
        await self.rebuild(wrong)
        return wrong

    async def rebuild_all(self) -> bool:
        """Throw everything away and load it again. False if another process is at it, or took over."""
        return await self._load_all(force=1)

    async def rebuild(self, lanes: Collection[LaneId | None]) -> None:
        """Replace these queues, each at once, and after any of them the system's."""
        if not lanes:
            return
        for lane in sorted(lane for lane in lanes if lane is not None):
            await self._replace(lane)
        await self._replace(None)
        _log.info("Queues in Redis were rebuilt from the database.", queues=len(lanes))

    async def _load_all(self, force: int) -> bool:
        token = self._ids.token(size=8)
        begun = await self._link.call(BEGIN, token, _LEASE_MS, force)
        if begun != _OURS:
            return bool(begun)
        await self._wipe()
        count = 0
        async for page in all_entries(self._database):
            if not await self._link.call(LOAD, token, _LEASE_MS, *_words(page)):
                return False
            count += len(page)
        if not await self._link.call(VOUCH, token):
            return False
        _log.info("The queue in Redis was rebuilt from the database.", entries=count)
        # What was committed after its page was read could not be told to Redis, which served nobody.
        await self.rebuild(await self.disagreeing())
        return True

    async def _replace(self, lane: LaneId | None) -> None:
        """Again and again, until nobody changed the queue between the look at the database and the swap."""
        for attempt in range(1, _ATTEMPTS + 1):
            force = int(attempt == _ATTEMPTS)
            if await self._try_replace(lane, force):
                return

    async def _try_replace(self, lane: LaneId | None, force: int) -> bool:
        word = lane_word(lane)
        base = f"{PREFIX}rebuild:{self._ids.token(size=8)}"
        marker, changes = await self._link.call(SEEN, word)
        async for page in entries_of(self._database, lane):
            await self._link.call(STAGE, word, base, *_words(page))
        done = bool(await self._link.call(SWAP, word, base, marker, changes, force))
        await self._retire(f"{base}:old" if done else base)
        return done

    async def _retire(self, base: str) -> None:
        """Forget those of a queue that was replaced, or built in vain, that stand nowhere now."""
        for key, command in ((f"{base}:pending", "ZSCAN"), (f"{base}:active", "SSCAN")):
            async for names in self._link.scan(command, key):
                await self._link.call(RETIRE, *names)
            await self._link.command("UNLINK", key)

    async def _wipe(self) -> None:
        async for keys in self._link.scan("SCAN", "MATCH", f"{PREFIX}*"):
            gone = [key for key in keys if key != REBUILDING.encode()]
            if gone:
                await self._link.command("UNLINK", *gone)


def _words(page: list[ItemRow]) -> list[str | bytes | int]:
    """Id, state, place and event of each, as the scripts take them."""
    found: list[str | bytes | int] = []
    for row in page:
        item = row.item()
        found += (row.execution, row.state.value, place_of(item), item.payload)
    return found
