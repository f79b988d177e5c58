"""When a condition of the whole installation begins and ends, and in which words that is told. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from attune.pipeline.alerts.incidents import moment
from attune.pipeline.alerts.model import (
    Alert,
    ConditionName,
    Episode,
    Episodes,
    Keyed,
    Readings,
    Severity,
)
from attune.pipeline.events.model import OWN_KEYS

_N = ConditionName


class _Condition(msgspec.Struct, frozen=True):
    """It holds above `limit`, or, where there is none, at 0. `text` is worded with `{0}`, the value."""

    severity: Severity
    category: str
    value: Callable[[Readings], int]
    limit: int | None
    text: str
    ended: str


CONDITIONS: Final[Mapping[ConditionName, _Condition]] = {
    _N.HIGH_EXECUTION_TIMEOUT_RATE: _Condition(
        Severity.WARNING,
        "execution",
        lambda seen: seen.timeouts,
        10,
        "{0} executions were not begun or not ended in time within a minute.",
        "Executions are begun and ended in time again.",
    ),
    _N.NO_ACTIVE_WORKERS: _Condition(
        Severity.CRITICAL,
        "worker",
        lambda seen: seen.active_workers,
        None,
        "There is no active worker: nothing can run.",
        "There is an active worker again.",
    ),
    _N.DLQ_BUILDUP: _Condition(
        Severity.WARNING,
        "message",
        lambda seen: seen.dead_letters,
        100,
        "{0} dead letters wait to be replayed or deleted.",
        "There are few dead letters again.",
    ),
    _N.STALE_EXECUTIONS: _Condition(
        Severity.WARNING,
        "execution",
        lambda seen: seen.stale_executions,
        0,
        "{0} executions have been scheduled for more than five minutes and were not begun.",
        "No execution has been scheduled for more than five minutes.",
    ),
}


def after(known: Episodes, seen: Readings, now: datetime) -> Episodes:
    """What is to be known from now on: some begin, some end, the others stay as they are."""
    found = dict(known)
    for name, condition in CONDITIONS.items():
        last, value = known.get(name), condition.value(seen)
        holds = _holds(name, condition, seen, last)
        if last is not None and last.until is None:
            if not holds:
                found[name] = msgspec.structs.replace(last, until=now, last_value=value, told=False)
        elif holds and (last is None or last.told):
            found[name] = Episode(since=now, value=value)
    return found


def alerts_of(name: ConditionName, episode: Episode) -> list[Keyed]:
    """The beginning, and the end once it is over: the same whoever words them."""
    key = f"installation:{name}:{moment(episode.since)}"
    began = Keyed(OWN_KEYS + key, _began(name, episode, key))
    if episode.until is None:
        return [began]
    return [began, Keyed(f"{OWN_KEYS}{key}:resolved", _resolved(name, episode, episode.until, key))]


def _holds(
    name: ConditionName, condition: _Condition, seen: Readings, last: Episode | None
) -> bool:
    """An installation that never had a worker misses none. One that missed them still does when the rows are gone."""
    value = condition.value(seen)
    if name is _N.NO_ACTIVE_WORKERS:
        missing = last is not None and last.until is None
        return value == 0 and (seen.had_workers or missing)
    return value > (condition.limit or 0)


def _began(name: ConditionName, episode: Episode, key: str) -> Alert:
    condition = CONDITIONS[name]
    return Alert(
        severity=condition.severity,
        category=condition.category,
        failure_type=name.value,
        component_type="installation",
        component_id=None,
        component_ref=None,
        worker_role=None,
        observed_at=episode.since,
        summary=condition.text.format(episode.value),
        details={"resolved": False, "value": episode.value, "limit": condition.limit},
        correlation_id=key,
    )


def _resolved(name: ConditionName, episode: Episode, until: datetime, key: str) -> Alert:
    began = _began(name, episode, key)
    seconds = (until - episode.since).total_seconds()
    return msgspec.structs.replace(
        began,
        severity=Severity.INFO,
        observed_at=until,
        summary=f"Resolved: {CONDITIONS[name].ended}",
        details={
            **began.details,
            "resolved": True,
            "value": episode.last_value,
            "since": moment(episode.since),
            "lasted_seconds": seconds,
        },
    )
