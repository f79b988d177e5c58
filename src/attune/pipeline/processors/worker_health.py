"""Who of the workers is gone, and who lives but cannot be reached. Safe in any number of executors."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from attune.bus.port import Bus
from attune.bus.topology import worker_queue_name
from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.ids import Ids
from attune.kernel.messages import MessageType, WorkerProbe
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Outbox
from attune.pipeline.workers.beats import mark_lost, oldest_beat, silent_workers
from attune.pipeline.workers.model import Probing
from attune.pipeline.workers.probes import claim_questions
from attune.store.database import Tx

_BEATS: Final = 3  # that may be missed; `terms.stale` is as long
_OVERLAP: Final = timedelta(milliseconds=10)  # keeps a clock's jitter from a pass too early

_log = structlog.get_logger()


class Watch:
    """Whether somebody has looked for long enough, without a break, to hold silence against others.

    A look that failed, or that came later than it was meant to, is a break: while this process or its servers
    were away nobody could be heard. Those who live need time to be heard again.
    """

    def __init__(self, needed: timedelta, slack: timedelta) -> None:
        self._needed = needed
        self._slack = slack
        self._since: datetime | None = None
        self._last = self._expected = datetime.min.replace(tzinfo=UTC)

    def look(self, now: datetime) -> bool:
        """Tell of a look; whether it is the end of a watch that was long enough."""
        if self._since is None or not self._last <= now <= self._expected + self._slack:
            self._since = now
        self._last = self._expected = now
        return now - self._since >= self._needed

    @contextmanager
    def looking(self, now: datetime) -> Iterator[bool]:
        try:
            yield self.look(now)
        except Exception:
            self.broke()
            raise

    def broke(self) -> None:
        self._since = None

    def rest_until(self, moment: datetime) -> None:
        """The next look is meant to come then."""
        self._expected = moment

    @property
    def ready_at(self) -> datetime | None:
        """When it will have been long enough; None after a break."""
        return None if self._since is None else self._since + self._needed


class LostWorkersConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is the longest rest: a pass is due when the next worker would have been silent for too long."""

    interval: float = 10.0


class LostWorkers(Duty[LostWorkersConfig]):
    """Gives up workers that have been silent for three heartbeats, and takes back what they held."""

    name = "lost workers"

    def __init__(self, flow: Flow, clock: Clock, config: LostWorkersConfig | None = None) -> None:
        super().__init__(config or LostWorkersConfig(), clock)
        self._flow = flow
        self._stale = flow.terms.stale
        self._beat = self._stale / _BEATS
        self._watch = Watch(needed=1.5 * self._beat, slack=self._beat / 2)
        self._next: datetime | None = None

    async def run_once(self) -> None:
        now = self.clock.now()
        self._next = None
        with self._watch.looking(now) as ready:
            if ready:
                await self._give_up(now)
            oldest = await self._flow.database.read(oldest_beat)
        if oldest is not None and (ready_at := self._watch.ready_at) is not None:
            self._next = max(oldest + self._stale, ready_at)

    def until_next(self) -> float:
        """After a failed pass it comes back sooner: those who live are counted as heard only from then on."""
        now, most = self.clock.now(), self.config.interval
        if self._watch.ready_at is None:
            most = min(most, self._beat.total_seconds() / 2)
        moment = _next_moment(self._next, most, now)
        self._watch.rest_until(moment)
        return (moment - now).total_seconds()

    async def _give_up(self, now: datetime) -> None:
        database, since = self._flow.database, now - self._stale
        lost = taken = 0
        for worker in await database.read(silent_workers, since):
            silence = await database.run(mark_lost, worker, since, now)
            if silence is not None:
                lost += 1
                seconds = round(silence.total_seconds(), 3)
                _log.warning("A worker is lost.", worker_id=worker, silent_for_seconds=seconds)
        if self._watch.look(self.clock.now()):
            taken = await self._flow.take_back_from_silent()
        if taken:
            _log.warning("Took work back from workers that are gone.", executions=taken)
        if lost or taken:
            await self._flow.schedule()


class WorkerProbesConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is that of the questions to each worker, by all executors together."""

    interval: float = 30.0


class WorkerProbes(Duty[WorkerProbesConfig]):
    """Asks every worker over the bus. Who does not answer for two intervals gets nothing new until it does.

    What such a worker runs is left alone, because its heartbeat lives.
    """

    name = "worker probes"

    def __init__(
        self,
        flow: Flow,
        bus: Bus,
        ids: Ids,
        clock: Clock,
        config: WorkerProbesConfig | None = None,
    ) -> None:
        super().__init__(config or WorkerProbesConfig(), clock)
        self._flow = flow
        self._bus = bus
        self._ids = ids
        self._interval = timedelta(seconds=self.config.interval)
        self._watch = Watch(needed=self._interval, slack=self._interval / 2)
        self._next: datetime | None = None

    async def run_once(self) -> None:
        """Without the bus nobody can be asked, and an answer that is under way does not arrive."""
        self._next = None
        if not self._bus.connected:
            self._watch.broke()
            return
        with self._watch.looking(self.clock.now()) as judges:
            probing = await self._flow.database.run(self._ask_step, judges=judges)
        for one in probing.unresponsive:
            _log.warning("A worker does not answer.", worker=one.name, asked_at=one.asked_at)
        self._next = probing.next_at

    def until_next(self) -> float:
        now = self.clock.now()
        moment = _next_moment(self._next, self.config.interval, now)
        self._watch.rest_until(moment)
        return (moment - now).total_seconds()

    async def _ask_step(self, tx: Tx, *, judges: bool) -> Probing:
        now, outbox = self.clock.now(), Outbox(tx, self._flow.mail)
        since = now - self._flow.terms.stale
        probing = await claim_questions(tx, self._interval, since, now, judges=judges)
        for one in probing.ask:
            question = WorkerProbe(worker_id=one.id, probe_id=self._ids.message_id())
            outbox.order(MessageType.WORKER_PROBE, question, to=worker_queue_name(one.id))
        return probing


def _next_moment(wanted: datetime | None, most: float, now: datetime) -> datetime:
    """When to look again: at that moment, but neither at once nor after more than so many seconds."""
    latest = now + timedelta(seconds=most)
    return latest if wanted is None else min(max(wanted, now) + _OVERLAP, latest)
