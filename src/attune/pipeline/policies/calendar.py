"""When the windows and blackouts of a policy let executions start.

A moment is inside a window if the clock on a wall in the window's zone says so. Where that clock jumps ahead, a
window whose start it skips opens at the jump, and one that it skips whole does not open; where it goes back, the
times that it shows twice count both times.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final

import msgspec

from attune.catalog.policy_times import DAYS, blackout_span, minute_of_day, zone_of
from attune.pipeline.policies.model import Blackout, Window

LOOK_AHEAD: Final = timedelta(days=366)

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_DAY_MINUTES: Final = 24 * 60
_WEEK_MINUTES: Final = 7 * _DAY_MINUTES


class Opening(msgspec.Struct, frozen=True):
    """`until` is in UTC: when it closes if it is open, when it opens if it is closed; null if not in sight."""

    is_open: bool
    until: datetime | None
    text: str


def opening(windows: Sequence[Window], blackouts: Sequence[Blackout], now: datetime) -> Opening:
    """Without windows it is open except for blackouts. It looks ahead for `LOOK_AHEAD`, blackouts not counted."""
    now = now.astimezone(UTC)
    spans = _spans(tuple(windows))
    opens = _next_open(spans, blackouts, now)
    if opens == now:
        return _open(spans, blackouts, now)
    ends = _blackout_end(blackouts, now)
    text = "outside its windows" if ends is None else f"in a blackout until {_shown(ends)}"
    if opens is None:
        text += f", and no window opens in the {LOOK_AHEAD.days} days that follow"
    elif opens != ends:
        text += f"; the next window opens at {_shown(opens)}"
    return Opening(is_open=False, until=opens, text=text)


def windows_of(written: Sequence[Mapping[str, Any]]) -> tuple[Window, ...]:
    """As a policy's row has them."""
    return msgspec.convert(written, tuple[Window, ...])


def blackouts_of(written: Sequence[Mapping[str, Any]]) -> tuple[Blackout, ...]:
    """As a policy's row has them: moments as they were written, or dates for whole days of UTC."""
    return tuple(Blackout(*blackout_span(each["from"], each["to"])) for each in written)


class _Span(msgspec.Struct, frozen=True):
    """From `start` to before `end`, both since the midnight of each of the days; the end may be on the next day."""

    days: frozenset[int]
    start: timedelta
    end: timedelta
    zone: tzinfo

    def holds(self, moment: datetime) -> bool:
        wall = moment.astimezone(self.zone).replace(tzinfo=None)
        today = datetime.combine(wall.date(), time())
        return any(
            day.weekday() in self.days and self.start <= wall - day < self.end
            for day in (today, today - _DAY)
        )


def _open(spans: tuple[_Span, ...], blackouts: Sequence[Blackout], now: datetime) -> Opening:
    closings = [each.begin.astimezone(UTC) for each in blackouts if each.begin > now]
    if (change := _next_change(spans, now)) is not None:
        closings.append(change)
    if closings:
        until = min(closings)
        return Opening(is_open=True, until=until, text=f"open until {_shown(until)}")
    text = f"open for the next {LOOK_AHEAD.days} days" if spans else "open without an end"
    return Opening(is_open=True, until=None, text=text)


def _next_open(
    spans: tuple[_Span, ...], blackouts: Sequence[Blackout], moment: datetime
) -> datetime | None:
    """The moment itself, if it is open then."""
    while True:
        if (end := _blackout_end(blackouts, moment)) is not None:
            moment = end
        if _is_inside(spans, moment):
            return moment
        change = _next_change(spans, moment)
        if change is None or _blackout_end(blackouts, change) is None:
            return change
        moment = change


def _blackout_end(blackouts: Sequence[Blackout], moment: datetime) -> datetime | None:
    """When the blackout of this moment is over, and every other one that it runs into; null if there is none."""
    end = None
    while ends := [each.end for each in blackouts if each.begin <= (end or moment) < each.end]:
        end = max(ends).astimezone(UTC)
    return end


def _is_inside(spans: tuple[_Span, ...], moment: datetime) -> bool:
    return not spans or any(span.holds(moment) for span in spans)


def _next_change(spans: tuple[_Span, ...], moment: datetime) -> datetime | None:
    """When the windows next open or close, in whichever state they are."""
    if not spans:
        return None
    before = _is_inside(spans, moment)
    day, last = moment, moment + LOOK_AHEAD
    while day < last:
        for bound in sorted(_bounds(spans, day, day + _DAY)):
            if _is_inside(spans, bound) != before:
                return bound
        day += _DAY
    return None


def _bounds(spans: tuple[_Span, ...], begin: datetime, end: datetime) -> set[datetime]:
    """All moments after `begin` and up to `end` at which something can change; between them nothing does."""
    found = {jump for zone in {span.zone for span in spans} for jump in _jumps(zone, begin, end)}
    for span in spans:
        first = datetime.combine(begin.astimezone(span.zone).date(), time()) - _DAY
        for number in range(4):
            midnight = first + number * _DAY
            for wall in (midnight + span.start, midnight + span.end % _DAY):
                found.update(_moments(wall, span.zone))
    return {each for each in found if begin < each <= end}


def _moments(wall: datetime, zone: tzinfo) -> Iterator[datetime]:
    """When a clock in the zone shows this time: twice where it is set back."""
    for fold in (0, 1):
        yield wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _jumps(zone: tzinfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The second at which clocks in the zone are changed, if that is in these 24 hours."""
    low, high = (each.replace(microsecond=0) for each in (begin, end + _SECOND))
    before = low.astimezone(zone).utcoffset()
    if before == high.astimezone(zone).utcoffset():
        return
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    yield high


@lru_cache(maxsize=1024)
def _spans(windows: tuple[Window, ...]) -> tuple[_Span, ...]:
    """None at all where the windows of one zone are the whole week: they rule nothing out."""
    spans = tuple(_span(window) for window in windows)
    for zone in {span.zone for span in spans}:
        if _covers_week([span for span in spans if span.zone == zone]):
            return ()
    return spans


def _span(window: Window) -> _Span:
    start, end = minute_of_day(window.start), minute_of_day(window.end)
    if end <= start:
        end += _DAY_MINUTES
    return _Span(
        days=frozenset(DAYS.index(day) for day in window.days),
        start=timedelta(minutes=start),
        end=timedelta(minutes=end),
        zone=zone_of(window.timezone),
    )


def _covers_week(spans: Sequence[_Span]) -> bool:
    covered: set[int] = set()
    for span in spans:
        start, end = (int(each.total_seconds()) // 60 for each in (span.start, span.end))
        for day in span.days:
            first = day * _DAY_MINUTES
            covered.update(minute % _WEEK_MINUTES for minute in range(first + start, first + end))
    return len(covered) == _WEEK_MINUTES


def _shown(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
