"""Results: medians, spreads, ratios, and the three ways in which they are shown."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.__main__ import keep
from bench.chart import Bar, as_svg
from bench.contests import bars, in_turn, nearest
from bench.measure import Case
from bench.peers.run import Peer
from bench.report import as_text
from bench.results import MILLISECONDS, RATE, Result, as_json, by_name, from_json

FAST = Result("ours: free", RATE, None, [90.0, 100.0, 110.0])
SLOW = Result("theirs: free", RATE, "ours: free", [50.0, 50.0, 50.0])
QUICK = Result("ours: latency", MILLISECONDS, None, [2.0])
LATE = Result("theirs: latency", MILLISECONDS, "ours: latency", [8.0])
AWAY = Result("nobody: free", beside="ours: free", note="it could not be installed")


def test_a_spread_is_half_the_distance_of_the_extremes() -> None:
    assert FAST.median == 100.0
    assert FAST.spread == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("result", "ratio"), [(SLOW, 0.5), (LATE, 0.25), (AWAY, None), (FAST, None)]
)
def test_a_ratio_below_one_is_worse_whatever_the_unit(result: Result, ratio: float | None) -> None:
    assert result.ratio(by_name([FAST, SLOW, QUICK, LATE, AWAY])) == ratio


def test_the_table_names_what_a_result_stands_beside_and_why_one_is_missing() -> None:
    text = as_text("peers", [FAST, SLOW, LATE, AWAY])
    assert "50/s" in text
    assert "0.50 of ours: free" in text
    assert "(it could not be installed)" in text


def test_json_has_one_shape_for_all_and_can_be_read_back() -> None:
    rows = as_json([FAST, SLOW, AWAY])
    assert rows[1] == {
        "name": "theirs: free",
        "unit": RATE,
        "median": 50.0,
        "spread": 0.0,
        "rounds": 3,
        "beside": "ours: free",
        "ratio": 0.5,
        "note": "",
    }
    assert [one.median for one in from_json(rows)] == [100.0, 50.0, None]


def test_a_chart_is_well_formed_and_has_the_best_of_each_case_on_top() -> None:
    svg = as_svg(
        [
            Bar("free", "slow <&>", 10.0, RATE, ours=False),
            Bar("free", "Attune", 40.0, RATE, ours=True),
            Bar("idle latency", "late", 9.0, MILLISECONDS, ours=False),
            Bar("idle latency", "Attune", 2.0, MILLISECONDS, ours=True),
        ]
    )
    root = ET.fromstring(svg)  # noqa: S314 - we have just written it
    texts = [each.text for each in root.iter() if each.tag.endswith("text")]
    names = [text for text in texts if text in {"slow <&>", "Attune", "late"}]
    assert names == ["Attune", "slow <&>", "Attune", "late"]
    widths = [float(each.attrib["width"]) for each in root.iter() if each.tag.endswith("rect")]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01)


def test_the_chart_leaves_out_high_percentiles_and_those_that_are_missing() -> None:
    results = [
        Result("embedded: idle latency, p50", MILLISECONDS, values=[2.0]),
        Result("embedded: idle latency, p99", MILLISECONDS, values=[5.0]),
        Result("huey: free", values=[1.0]),
        AWAY,
    ]
    assert bars(results) == [
        Bar("idle latency", "Attune, embedded", 2.0, MILLISECONDS, ours=True),
        Bar("free", "huey", 1.0, RATE, ours=False),
    ]


def test_contestants_take_turns_case_by_case() -> None:
    async def work() -> int:
        return 1

    names = ["embedded: free", "embedded: limit 10", "huey: free", "huey: limit 10"]
    ordered = in_turn([Case(name, work) for name in names])
    assert [one.name for one in ordered] == [names[0], names[2], names[1], names[3]]


def test_a_quick_contest_has_each_peer_once_in_its_nearest_variant() -> None:
    variants = [("a", "plain"), ("a", "results"), ("b", "plain"), ("b", "sqlite"), ("c", "ordered")]
    peers = [Peer(name, variant, "PostgreSQL", ("free",)) for name, variant in variants]
    chosen = [(peer.name, peer.variant) for peer in nearest(peers)]
    assert chosen == [("a", "results"), ("b", "plain"), ("c", "ordered")]


def test_a_file_of_results_keeps_the_suites_that_were_not_run(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    keep(file, "store", [Result("a", values=[1.0])])
    keep(file, "peers", [Result("b", values=[2.0])])
    keep(file, "store", [Result("a", values=[3.0])])
    kept = {suite: from_json(rows) for suite, rows in json.loads(file.read_text()).items()}
    assert {suite: [one.values for one in rows] for suite, rows in kept.items()} == {
        "store": [[3.0]],
        "peers": [[2.0]],
    }
