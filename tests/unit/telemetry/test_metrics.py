"""The text that Prometheus reads."""

from hypothesis import given
from hypothesis import strategies as st

from attune.telemetry.metrics import Family, Histogram, Kind, Point, counter, exposition, gauge


def test_a_family_has_its_help_its_type_and_its_lines() -> None:
    assert exposition([gauge("queue_depth", "What waits.", 3)]) == (
        "# HELP queue_depth What waits.\n# TYPE queue_depth gauge\nqueue_depth 3\n"
    )


def test_families_follow_each_other_and_numbers_keep_their_precision() -> None:
    text = exposition([counter("a_total", "A.", 2**60), gauge("b", "B.", 0.1 + 0.2)])
    assert "a_total 1152921504606846976\n# HELP b" in text
    assert text.endswith("b 0.30000000000000004\n")


def test_labels_and_help_cannot_break_out_of_their_line() -> None:
    point = Point(1, {"name": 'a"b\\c\nd'})
    text = exposition([Family("x", Kind.GAUGE, "one\ntwo\\", (point,))])
    assert text == '# HELP x one\\ntwo\\\\\n# TYPE x gauge\nx{name="a\\"b\\\\c\\nd"} 1\n'


def test_a_value_on_a_bound_is_within_it() -> None:
    histogram = Histogram([1, 5])
    for value in (0.5, 1, 5, 6):
        histogram.observe(value)
    found = [(point.labels.get("le"), point.value) for point in histogram.points({})]
    assert found == [("1", 2), ("5", 3), ("+Inf", 4), (None, 12.5), (None, 4)]


@given(st.lists(st.floats(0, 1e6)), st.lists(st.floats(0, 1e6), min_size=1, unique=True))
def test_buckets_never_fall_and_the_last_holds_everything(
    values: list[float], bounds: list[float]
) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    points = list(histogram.points({}))
    buckets = [point.value for point in points if point.suffix == "_bucket"]
    assert buckets == sorted(buckets)
    assert buckets[-1] == points[-1].value == len(values)
