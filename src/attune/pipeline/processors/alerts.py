"""Tells people, by events of core.alert, which rules answer like any other. Safe in any number of executors.

What became of workers and of executions on them is told once for each. Conditions of the whole installation are looked
at every minute, and told when they begin and when they end. An event has its alert's key, so one that several
executors raise, or one that raises it again after a crash, is still one event.
"""

from collections.abc import Iterable
from datetime import timedelta

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import DutyConfig
from attune.pipeline.alerts.decide import alerts_of
from attune.pipeline.alerts.model import ConditionName, Episode, Episodes, Keyed
from attune.pipeline.alerts.steps import advance, due, mark_told, reach, reached, untold
from attune.pipeline.events.model import NewEvent
from attune.pipeline.flow import Flow
from attune.pipeline.processors.woken import WokenDuty
from attune.pipeline.workers.history import ALERTS

_TRIGGER = "core.alert"

_log = structlog.get_logger()


class AlertsConfig(DutyConfig, frozen=True, kw_only=True):
    """`look_interval` is that of the conditions, in seconds; `batch` is how many events one transaction records."""

    interval: float = 10.0
    look_interval: float = 60.0
    batch: int = 500


class Alerts(WokenDuty[AlertsConfig]):
    """The first look comes after one interval: who starts together with the executor has that long to come."""

    name = "alerts"
    topics = (ALERTS,)

    def __init__(self, flow: Flow, clock: Clock, config: AlertsConfig | None = None) -> None:
        super().__init__(flow, clock, config or AlertsConfig())
        self._between = timedelta(seconds=self.config.look_interval)
        self._next_look = clock.now() + self._between

    async def run_once(self) -> None:
        await self._tell_incidents()
        now = self.clock.now()
        if now >= self._next_look:
            await self._look()
            self._next_look = now + self._between

    def until_next(self) -> float:
        """Until the next look, and an interval at most; also after a look that failed, which is still due."""
        wait = (self._next_look - self.clock.now()).total_seconds()
        return min(wait, self.config.interval) if wait > 0 else self.config.interval

    async def _tell_incidents(self) -> None:
        """Where nothing happened nothing is written, and looking again is a look at the end of an index."""
        database, now = self._flow.database, self.clock.now()
        place = first = await database.read(reached, now)
        while (page := await database.read(untold, place, self.config.batch)).last is not None:
            await self._record(page.untold)
            place = page.last
        if place != first:
            await database.run(reach, now)

    async def _look(self) -> None:
        database, stale, now = self._flow.database, self._flow.terms.stale, self.clock.now()
        if not await database.read(due, stale, now):
            return
        found = await database.run(advance, stale, now)
        new: Episodes = {name: one for name, one in found.items() if not one.told}
        await self._record(
            alert for name, one in sorted(new.items()) for alert in alerts_of(name, one)
        )
        await database.run(mark_told, new, now)
        for name, one in new.items():
            _say(name, one)

    async def _record(self, alerts: Iterable[Keyed]) -> None:
        new = [
            NewEvent(
                trigger_ref=_TRIGGER,
                payload=msgspec.to_builtins(one.alert),
                idempotency_key=one.key,
            )
            for one in alerts
        ]
        if new:
            await self._flow.record_events(new)


def _say(name: ConditionName, episode: Episode) -> None:
    if episode.until is None:
        _log.warning("An alert was raised.", alert=name.value, value=episode.value)
    else:
        _log.info("An alert was resolved.", alert=name.value, value=episode.last_value)
