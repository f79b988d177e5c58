"""A cost as tables for people and as JSON for machines; everything for one execution."""

from dataclasses import asdict, dataclass
from typing import Any

from bench.cost.ledger import Ledger, Stage

_MICRO = 1e6


@dataclass(frozen=True)
class Cost:
    """Seconds. `bare` is the same work without probes."""

    name: str
    count: int
    bare: float
    seconds: float
    cpu: dict[str, float]
    ledger: Ledger

    def each(self, seconds: float) -> float:
        """Microseconds for one execution."""
        return seconds * _MICRO / self.count

    @property
    def accounted(self) -> float:
        """Seconds of the loop that stages have; the rest is asyncio, callbacks and what no probe sees."""
        return sum(stage.loop_cpu for stage in self.ledger.stages.values())


def as_text(cost: Cost, statements: int) -> str:
    blocks = [_heading(cost), _cpu(cost), _stages(cost), _statements(cost, statements)]
    blocks.append(_counts(cost))
    if cost.ledger.missing:
        blocks.append("not found, so not measured: " + ", ".join(cost.ledger.missing))
    return "\n".join(blocks)


def _heading(cost: Cost) -> str:
    return (
        f"{cost.name}: {cost.count:,} executions, {cost.count / cost.bare:,.0f}/s;"
        f" under the probes {cost.count / cost.seconds:,.0f}/s. Microseconds for one execution:"
    )


def _cpu(cost: Cost) -> str:
    parts = [f"{name} {cost.each(seconds):,.0f}" for name, seconds in cost.cpu.items()]
    rest = max(cost.cpu["event loop"] - cost.accounted, 0.0)
    return (
        f"  processors: {', '.join(parts)}; elapsed {cost.each(cost.seconds):,.0f}\n"
        f"  of the event loop, outside of all stages: {cost.each(rest):,.0f}"
    )


_COLUMNS = ("loop CPU", "store CPU", "SQL CPU", "SQL waits", "store waits", "loop waits")


def _stages(cost: Cost) -> str:
    lines = [f"  {'stage':<34}{'calls':>8}" + "".join(f"{name:>12}" for name in _COLUMNS)]
    stages = sorted(cost.ledger.stages.items(), key=lambda pair: _weight(pair[1]), reverse=True)
    for name, stage in stages:
        values = (
            stage.loop_cpu,
            stage.store_cpu,
            stage.sql_cpu,
            stage.sql_waited,
            stage.store_waited,
            stage.loop_waited,
        )
        shown = "".join(f"{cost.each(value):>12,.1f}" for value in values)
        lines.append(f"  {name[:33]:<34}{stage.calls / cost.count:>8.3f}{shown}")
    return "\n".join(lines)


def _weight(stage: Stage) -> float:
    return stage.loop_cpu + stage.store_cpu + stage.sql_cpu + stage.sql_waited


def _statements(cost: Cost, count: int) -> str:
    lines = [f"  {'statement':<14}{'calls':>8}{'rows':>8}{'CPU':>9}{'waits':>9}"]
    lines += [
        f"  {one.stage[:13]:<14}{one.calls / cost.count:>8.3f}{one.rows / cost.count:>8.2f}"
        f"{cost.each(one.cpu):>9,.1f}{cost.each(one.waited):>9,.1f}  {one.sql[:110]}"
        for one in cost.ledger.slowest()[:count]
    ]
    return "\n".join(lines)


def _counts(cost: Cost) -> str:
    counted = sorted(cost.ledger.counts.items())
    shown = [f"{what} {number / cost.count:.3f}" for what, number in counted if number]
    return "  counts: " + ", ".join(shown)


def as_json(cost: Cost) -> dict[str, Any]:
    """Microseconds, calls, rows and counts, all for one execution."""
    return {
        "name": cost.name,
        "executions": cost.count,
        "per_second": round(cost.count / cost.bare, 1),
        "per_second_under_probes": round(cost.count / cost.seconds, 1),
        "cpu": {name: round(cost.each(seconds), 2) for name, seconds in cost.cpu.items()},
        "stages": {name: _each(cost, asdict(stage)) for name, stage in cost.ledger.stages.items()},
        "statements": [_each(cost, asdict(one)) for one in cost.ledger.slowest()],
        "counts": {
            what: round(number / cost.count, 4)
            for what, number in sorted(cost.ledger.counts.items())
        },
        "missing": cost.ledger.missing,
    }


def _each(cost: Cost, fields: dict[str, Any]) -> dict[str, Any]:
    """Floats are seconds, whole numbers are counts."""
    return {
        name: round(cost.each(value), 2)
        if isinstance(value, float)
        else round(value / cost.count, 4)
        if isinstance(value, int)
        else value
        for name, value in fields.items()
    }
