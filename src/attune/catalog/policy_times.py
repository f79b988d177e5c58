"""Times that a policy names: times of day in a zone, and blackouts from one moment or day to another."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from attune.catalog.refs import shown, unknown_ref

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DEFAULT_ZONE: Final = "UTC"

_TIME: Final = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_MOMENT: Final = re.compile(_DATE.pattern + _CLOCK + r"(?:Z|[+-][0-9]{2}:[0-9]{2})")
_NO_OFFSET: Final = re.compile(_DATE.pattern + _CLOCK)
_YEARS: Final = range(1970, 9991)
# Files among the zones that say what the machine is set to, not where something is.
_NO_ZONES: Final = frozenset({"localtime", "Factory"})


def minute_of_day(text: str) -> int:
    """Minutes since midnight of a sound HH:MM; 1440 for 24:00."""
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def start_fault(text: str) -> str | None:
    if text == "24:00":
        return "'24:00' ends a day and starts none; write '00:00'"
    return end_fault(text)


def end_fault(text: str) -> str | None:
    if _TIME.fullmatch(text):
        return None
    return f"{shown(text)} is not a time of day; write HH:MM, such as '08:30'"


def zone_fault(name: str) -> str | None:
    """Without time zone data on the machine, only UTC is known, and the fault says why."""
    if name in _zone_names():
        return None
    if _zone_names() == {DEFAULT_ZONE}:
        return f"unknown time zone {shown(name)}: this machine has no time zone data (tzdata)"
    return unknown_ref(name, _zone_names(), "time zone")


def zone_of(name: str) -> tzinfo:
    return UTC if name == DEFAULT_ZONE else ZoneInfo(name)


def moment_fault(text: str) -> str | None:
    if _NO_OFFSET.fullmatch(text):
        return f"{shown(text)} has no offset; end it with Z or one such as +01:00"
    if not (_MOMENT.fullmatch(text) or _DATE.fullmatch(text)):
        return f"{shown(text)} is neither a moment (2026-12-24T18:00:00Z) nor a date (2026-12-24)"
    if int(text[:4]) not in _YEARS:
        return f"must be in the years {_YEARS[0]} to {_YEARS[-1]}"
    try:
        _moment(text)
    except ValueError:
        return f"{shown(text)} does not exist"
    return None


def blackout_span(begin: str, end: str) -> tuple[datetime, datetime]:
    """In UTC, the end not included. A date is a whole day: as an end, its last moment counts."""
    last = _moment(end)
    return _moment(begin), last + timedelta(days=1) if _DATE.fullmatch(end) else last


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


@cache
def _zone_names() -> frozenset[str]:
    return frozenset({DEFAULT_ZONE, *available_timezones()}) - _NO_ZONES
