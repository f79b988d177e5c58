"""Windows and blackouts: when a policy lets executions start, to the second, also where clocks are changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attune.pipeline.policies.calendar import (
    LOOK_AHEAD,
    Opening,
    blackouts_of,
    opening,
    windows_of,
)
from attune.pipeline.policies.model import Blackout, Window

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTE = timedelta(minutes=1)
MONDAY = "2026-01-05"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def window(start: str, end: str, *days: str, zone: str = "UTC") -> Window:
    return Window(days or DAYS, start, end, zone)


def blackout(begin: str, end: str) -> Blackout:
    return blackouts_of([{"from": begin, "to": end}])[0]


def seen(now: str, windows: Sequence[Window] = (), *blackouts: Blackout) -> tuple[bool, str | None]:
    """Whether it is open, and until when."""
    found = opening(windows, blackouts, at(now))
    until = found.until.isoformat().replace("+00:00", "Z") if found.until else None
    return found.is_open, until


class TestWindows:
    def test_without_windows_and_blackouts_it_is_always_open(self) -> None:
        assert opening((), (), at(f"{MONDAY}T12:00Z")) == Opening(True, None, "open without an end")

    def test_the_start_counts_and_the_end_does_not(self) -> None:
        office = [window("08:00", "17:00")]
        assert seen(f"{MONDAY}T07:59:59.999999Z", office) == (False, f"{MONDAY}T08:00:00Z")
        assert seen(f"{MONDAY}T08:00Z", office) == (True, f"{MONDAY}T17:00:00Z")
        assert seen(f"{MONDAY}T16:59:59.999999Z", office) == (True, f"{MONDAY}T17:00:00Z")
        assert seen(f"{MONDAY}T17:00Z", office) == (False, "2026-01-06T08:00:00Z")

    def test_a_closed_weekend_opens_on_monday(self) -> None:
        office = [window("08:00", "17:00", "mon", "tue", "wed", "thu", "fri")]
        assert seen("2026-01-09T17:00Z", office) == (False, "2026-01-12T08:00:00Z")

    def test_an_end_at_or_before_the_start_is_on_the_next_day(self) -> None:
        """The day is the one on which the window starts."""
        night = [window("22:00", "06:00", "sun")]
        assert seen(f"{MONDAY}T05:59Z", night) == (True, f"{MONDAY}T06:00:00Z")
        assert seen(f"{MONDAY}T22:00Z", night) == (False, "2026-01-11T22:00:00Z")
        whole = [window("08:00", "08:00", "mon")]
        assert seen("2026-01-06T07:59Z", whole) == (True, "2026-01-06T08:00:00Z")
        assert seen("2026-01-06T08:00Z", whole) == (False, "2026-01-12T08:00:00Z")

    def test_windows_that_meet_are_one(self) -> None:
        both = [window("08:00", "24:00", "mon"), window("00:00", "06:00", "tue")]
        assert seen(f"{MONDAY}T12:00Z", both) == (True, "2026-01-06T06:00:00Z")

    @pytest.mark.parametrize("end", ["24:00", "00:00"])
    def test_all_day_on_all_days_never_closes(self, end: str) -> None:
        whole = [window("00:00", end, zone="Europe/Berlin")]
        assert seen("2026-03-29T00:30Z", whole) == (True, None)
        half_days = [window("12:00", "24:00"), window("00:00", "12:00")]
        assert seen("2026-03-29T00:30Z", half_days) == (True, None)

    def test_what_is_farther_away_than_a_year_is_not_in_sight(self) -> None:
        """Two zones without any changes of clocks that fill the day together."""
        together = [window("00:00", "12:00"), window("12:00", "24:00", zone="Etc/UTC")]
        found = opening(together, (), at(f"{MONDAY}T12:00Z"))
        assert found == Opening(True, None, f"open for the next {LOOK_AHEAD.days} days")

    def test_a_zone_of_an_odd_offset_is_exact(self) -> None:
        office = [window("08:00", "17:00", zone="Asia/Kathmandu")]
        assert seen(f"{MONDAY}T02:14:59Z", office) == (False, f"{MONDAY}T02:15:00Z")

    def test_now_may_come_in_any_zone_and_the_answer_is_in_utc(self) -> None:
        office = [window("08:00", "17:00")]
        assert seen(f"{MONDAY}T09:30:00+02:00", office) == (False, f"{MONDAY}T08:00:00Z")


class TestChangesOfClocks:
    """Berlin: 2026-03-29 from 02:00 to 03:00 at 01:00Z, 2026-10-25 from 03:00 back to 02:00 at 01:00Z."""

    def test_a_start_that_is_skipped_is_the_jump(self) -> None:
        early = [window("02:30", "03:30", zone="Europe/Berlin")]
        assert seen("2026-03-29T00:59:59Z", early) == (False, "2026-03-29T01:00:00Z")
        assert seen("2026-03-29T01:00Z", early) == (True, "2026-03-29T01:30:00Z")

    def test_an_end_that_is_skipped_is_the_jump(self) -> None:
        early = [window("01:30", "02:30", zone="Europe/Berlin")]
        assert seen("2026-03-29T00:45Z", early) == (True, "2026-03-29T01:00:00Z")

    def test_a_window_that_is_skipped_whole_does_not_open_that_day(self) -> None:
        gap = [window("02:15", "02:45", zone="Europe/Berlin")]
        assert seen("2026-03-28T12:00Z", gap) == (False, "2026-03-30T00:15:00Z")

    def test_times_that_come_twice_count_twice(self) -> None:
        early = [window("02:15", "02:45", zone="Europe/Berlin")]
        assert seen("2026-10-25T00:15Z", early) == (True, "2026-10-25T00:45:00Z")
        assert seen("2026-10-25T00:45Z", early) == (False, "2026-10-25T01:15:00Z")
        assert seen("2026-10-25T01:15Z", early) == (True, "2026-10-25T01:45:00Z")

    def test_an_hour_that_comes_twice_is_two_hours_long(self) -> None:
        early = [window("02:00", "03:00", zone="Europe/Berlin")]
        assert seen("2026-10-25T00:00Z", early) == (True, "2026-10-25T02:00:00Z")

    def test_a_window_over_the_night_of_the_change_is_an_hour_shorter(self) -> None:
        night = [window("22:00", "06:00", zone="Europe/Berlin")]
        assert seen("2026-03-28T21:00Z", night) == (True, "2026-03-29T04:00:00Z")

    def test_lord_howe_is_set_back_by_half_an_hour(self) -> None:
        """2026-04-05 at 02:00, which is 15:00Z of the day before, to 01:30."""
        early = [window("01:30", "02:00", zone="Australia/Lord_Howe")]
        assert seen("2026-04-04T14:30Z", early) == (True, "2026-04-04T15:30:00Z")

    def test_a_day_that_never_was_has_no_window(self) -> None:
        """Samoa went from Thursday the 29th to Saturday the 31st of December 2011, at 10:00Z."""
        friday = [window("08:00", "17:00", "fri", zone="Pacific/Apia")]
        assert seen("2011-12-30T09:00Z", friday) == (False, "2012-01-05T18:00:00Z")


class TestBlackouts:
    def test_a_blackout_closes_what_is_open(self) -> None:
        dark = blackout("2026-01-05T12:00:00Z", "2026-01-05T14:00:00+01:00")
        assert seen("2026-01-05T11:59Z", (), dark) == (True, "2026-01-05T12:00:00Z")
        assert seen("2026-01-05T12:00Z", (), dark) == (False, "2026-01-05T13:00:00Z")
        assert seen("2026-01-05T13:00Z", (), dark) == (True, None)

    def test_dates_are_whole_days_of_utc_and_the_last_is_part_of_it(self) -> None:
        feast = blackout("2026-12-24", "2026-12-26")
        assert seen("2026-12-23T23:59Z", (), feast) == (True, "2026-12-24T00:00:00Z")
        assert seen("2026-12-26T23:59Z", (), feast) == (False, "2026-12-27T00:00:00Z")

    def test_blackouts_that_meet_or_overlap_are_one(self) -> None:
        several = (
            blackout("2026-01-07", "2026-01-07"),
            blackout("2026-01-05T12:00:00Z", "2026-01-06T06:00:00Z"),
            blackout("2026-01-06", "2026-01-06"),
        )
        assert seen("2026-01-05T12:00Z", (), *several) == (False, "2026-01-08T00:00:00Z")

    def test_after_a_blackout_a_window_must_be_open_too(self) -> None:
        office = [window("08:00", "17:00")]
        dark = blackout("2026-01-05T07:00:00Z", "2026-01-06T20:00:00Z")
        found = opening(office, (dark,), at("2026-01-05T09:00Z"))
        assert (found.is_open, found.until) == (False, at("2026-01-07T08:00Z"))
        assert found.text == (
            "in a blackout until 2026-01-06T20:00:00Z; the next window opens at 2026-01-07T08:00:00Z"
        )

    def test_a_window_that_opens_into_a_blackout_does_not_count(self) -> None:
        office = [window("08:00", "17:00")]
        dark = blackout("2026-01-05T07:00:00Z", "2026-01-05T10:00:00Z")
        assert seen("2026-01-05T06:00Z", office, dark) == (False, "2026-01-05T10:00:00Z")

    def test_a_blackout_of_many_years_is_seen_to_its_end(self) -> None:
        office = [window("08:00", "17:00")]
        assert seen("2026-01-05T09:00Z", office, blackout("2026-01-01", "9990-12-31")) == (
            False,
            "9991-01-01T08:00:00Z",
        )

    def test_the_text_says_what_is_so(self) -> None:
        office, dark = [window("08:00", "17:00")], blackout("2026-01-05", "2026-01-05")
        for now, words in (
            ("2026-01-06T07:00Z", "outside its windows; the next window opens at 2026-01-06T08:00:00Z"),
            ("2026-01-06T09:00Z", "open until 2026-01-06T17:00:00Z"),
        ):  # fmt: skip
            assert opening(office, (dark,), at(now)).text == words
        closed = opening((), (dark,), at("2026-01-05T09:00Z")).text
        assert closed == "in a blackout until 2026-01-06T00:00:00Z"


def test_rows_are_read_as_the_calendar_needs_them() -> None:
    [found] = windows_of([{"days": ["mon"], "start": "08:00", "end": "17:00", "timezone": "UTC"}])
    assert found == window("08:00", "17:00", "mon")
    [dark] = blackouts_of([{"from": "2026-01-05T12:00:00+02:00", "to": "2026-01-05"}])
    assert dark == Blackout(at("2026-01-05T10:00Z"), at("2026-01-06T00:00Z"))


# Days with a change of clocks: at 01:00Z, at midnight, by half an hour, by two hours, over a whole day.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "America/St_Johns": ("2010-03-14", "2010-11-07"),
    "Atlantic/Azores": ("2026-03-29", "2026-10-25"),
    "Australia/Lord_Howe": ("2026-04-04", "2026-10-03"),
    "Antarctica/Troll": ("2026-03-29", "2026-10-25"),
    "Pacific/Apia": ("2011-12-30",),
    "Asia/Kathmandu": ("2026-06-01",),
    "UTC": ("2026-06-01",),
}
TIMES = st.integers(0, 24 * 60 - 1).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Window], list[Blackout], datetime]:
    """A moment near a change of clocks, with windows of that zone and of another, and blackouts about it."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    day = at(f"{draw(st.sampled_from(CHANGES[zone]))}T00:00Z")
    windows = st.builds(
        Window,
        days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(tuple),
        start=TIMES,
        end=st.one_of(TIMES, st.just("24:00")),
        timezone=st.sampled_from([zone, zone, zone, "Asia/Kathmandu"]),
    )
    near = st.integers(-36 * 60, 48 * 60).map(lambda minute: day + minute * MINUTE)
    dark = st.tuples(near, st.integers(1, 30 * 60)).map(
        lambda found: Blackout(found[0], found[0] + found[1] * MINUTE)
    )
    now = draw(near) + timedelta(seconds=draw(st.integers(0, 59)))
    return draw(st.lists(windows, max_size=3)), draw(st.lists(dark, max_size=2)), now


def is_open(windows: list[Window], blackouts: list[Blackout], moment: datetime) -> bool:
    """The definition, from the minute of the week on the wall."""
    if any(each.begin <= moment < each.end for each in blackouts):
        return False
    return not windows or any(is_inside(each, moment) for each in windows)


def is_inside(window: Window, moment: datetime) -> bool:
    wall = moment.astimezone(ZoneInfo(window.timezone))
    now = wall.weekday() * 1440 + wall.hour * 60 + wall.minute
    start, end = (int(each[:2]) * 60 + int(each[3:]) for each in (window.start, window.end))
    length = end - start if end > start else end - start + 1440
    return any((now - DAYS.index(day) * 1440 - start) % 10080 < length for day in window.days)


@given(situations())
@settings(max_examples=300, deadline=None)
def test_it_is_what_a_look_at_every_minute_finds(
    situation: tuple[list[Window], list[Blackout], datetime],
) -> None:
    windows, blackouts, now = situation
    found = opening(windows, blackouts, now)
    assert found.is_open == is_open(windows, blackouts, now)
    minute = now.replace(second=0) + MINUTE
    last = now + timedelta(days=4)
    while minute < last and is_open(windows, blackouts, minute) == found.is_open:
        minute += MINUTE
    if minute < last:
        assert found.until == minute
    else:
        assert found.until is None or found.until >= minute


@given(situations())
@settings(max_examples=100, deadline=None)
def test_at_the_moment_it_names_and_not_just_before_the_state_is_another(
    situation: tuple[list[Window], list[Blackout], datetime],
) -> None:
    windows, blackouts, now = situation
    found = opening(windows, blackouts, now)
    if found.until is not None:
        assert found.until > now
        before = opening(windows, blackouts, found.until - timedelta(microseconds=1))
        assert (before.is_open, before.until) == (found.is_open, found.until)
        assert opening(windows, blackouts, found.until).is_open != found.is_open
