"""One shape of a result for everything that is measured here: Attune's own cases and its peers'."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

RATE: Final = "/s"
MILLISECONDS: Final = "ms"
MICROSECONDS: Final = "µs"
MEGABYTES: Final = "MB"


@dataclass
class Result:
    """`values` has one for each round. Of a rate more is better, of every other unit less is."""

    name: str
    unit: str = RATE
    beside: str | None = None
    values: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float | None:
        """None for a case that could not be done; the note says why."""
        return statistics.median(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        """Half the distance from the least to the greatest value, as a part of the median."""
        if not self.median:
            return None
        return (max(self.values) - min(self.values)) / 2 / self.median

    def ratio(self, results: Mapping[str, "Result"]) -> float | None:
        """How many times as good as the result that it stands beside: above 1 it is better, whatever the unit."""
        other = results.get(self.beside or "")
        if other is None or not other.median or not self.median:
            return None
        return self.median / other.median if self.unit == RATE else other.median / self.median


def by_name(results: Sequence[Result]) -> dict[str, Result]:
    return {result.name: result for result in results}


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    known = by_name(results)
    return [
        {
            "name": result.name,
            "unit": result.unit,
            "median": _rounded(result.median),
            "spread": _rounded(result.spread),
            "rounds": len(result.values),
            "beside": result.beside,
            "ratio": _rounded(result.ratio(known)),
            "note": result.note,
        }
        for result in results
    ]


def from_json(rows: Sequence[Mapping[str, Any]]) -> list[Result]:
    """As far as a chart needs it: of the rounds, their median."""
    return [
        Result(
            row["name"],
            row["unit"],
            row["beside"],
            [] if row["median"] is None else [row["median"]],
            row["note"],
        )
        for row in rows
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
