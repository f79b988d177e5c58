"""Runs of peers put together: medians and spreads, as a table for people and as JSON for machines."""

import statistics
from collections.abc import Iterable
from typing import Any

import msgspec

from bench.peers.run import PeerResult

CASES = ("free", "limit10", "limit1", "latency")


class Summary(msgspec.Struct, frozen=True):
    """A peer in one case over all rounds. `spread` is half the distance from worst to best, as a part of the median."""

    peer: str
    version: str
    variant: str
    case: str
    count: int
    rounds: int
    per_second: float
    spread: float
    p50_ms: float | None
    p99_ms: float | None
    in_order: bool | None
    displaced: int | None
    results: bool
    note: str


def summarise(runs: Iterable[PeerResult]) -> list[Summary]:
    """In the order in which peer, variant and case first appear."""
    groups: dict[tuple[str, str, str], list[PeerResult]] = {}
    for run in runs:
        groups.setdefault((run.peer, run.variant, run.case), []).append(run)
    return [_summary(group) for group in groups.values()]


def _summary(group: list[PeerResult]) -> Summary:
    first = group[0]
    rates = [run.per_second for run in group]
    rate = statistics.median(rates)
    known = [run.in_order for run in group if run.in_order is not None]
    return Summary(
        peer=first.peer,
        version=first.version,
        variant=first.variant,
        case=first.case,
        count=first.count,
        rounds=len(group),
        per_second=round(rate, 1),
        spread=round((max(rates) - min(rates)) / 2 / rate, 3),
        p50_ms=_median(run.p50_ms for run in group),
        p99_ms=_median(run.p99_ms for run in group),
        in_order=all(known) if known else None,
        displaced=max((run.displaced for run in group if run.displaced is not None), default=None),
        results=first.results,
        note=first.note,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 3) if known else None


def as_text(summaries: list[Summary]) -> str:
    """One line for each peer and variant, one column for each case; `*` marks a run in the order of submission."""
    by_peer: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for summary in summaries:
        key = (summary.peer, summary.version, summary.variant)
        by_peer.setdefault(key, {})[summary.case] = summary
    head = ("peer", "version", "variant", *CASES[:-1], "p50 / p99 ms", "results")
    rows = [head] + [
        (*key, *(_cell(found.get(case)) for case in CASES), _results(found))
        for key, found in by_peer.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    if summary.p50_ms is not None:
        return f"{summary.p50_ms:.1f} / {summary.p99_ms:.1f}"
    star = "*" if summary.in_order else ""
    return f"{summary.per_second:,.0f}/s{star} ±{summary.spread:.0%}"


def _results(found: dict[str, Summary]) -> str:
    return "yes" if all(summary.results for summary in found.values()) else "no"


def as_json(summaries: list[Summary]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(summary) for summary in summaries]
