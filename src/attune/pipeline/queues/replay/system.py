"""The log of the whole system: hand-offs to workers, kept while it has a cap of its own."""

from itertools import pairwise
from typing import Final

from attune.kernel.ids import ExecutionId
from attune.pipeline.queues.decisions import Decision, Handed, LimitChanged
from attune.pipeline.queues.replay.faults import Fault, band_word

_AGEING: Final = "ageing"


def system_fault(row: Decision) -> Fault | None:
    """Ends are not in this log, so each row is judged by its own counts; null if it keeps to the rules."""
    return _foreign(row) or _handed_twice(row) or _out_of_order(row) or _miscounted(row)


def _handed(row: Decision) -> list[Handed]:
    return [item for item in row.items if isinstance(item, Handed)]


def _foreign(row: Decision) -> Fault | None:
    for item in row.items:
        if not isinstance(item, Handed | LimitChanged):
            kind = type(item).__name__.lower()
            return Fault(f"'{kind}' belongs to a lane, not to the whole system")
    return None


def _handed_twice(row: Decision) -> Fault | None:
    seen: set[ExecutionId] = set()
    for item in _handed(row):
        if item.execution in seen:
            text = f"execution {item.execution} is handed to two workers: it is in two places"
            return Fault(text, item.execution)
        seen.add(item.execution)
    return None


def _out_of_order(row: Decision) -> Fault | None:
    """By band, unless the row says that waiting was worth bands by then."""
    handed = _handed(row) if row.reason != _AGEING else []
    for before, item in pairwise(handed):
        if item.band < before.band:
            return Fault(
                f"execution {item.execution} ({band_word(item.band)}) is handed out after execution"
                f" {before.execution} ({band_word(before.band)}), out of order",
                item.execution,
            )
    return None


def _miscounted(row: Decision) -> Fault | None:
    count = len(_handed(row))
    after = row.active_before + count
    if row.active_after != after:
        return Fault(f"it says that {row.active_after} are with workers after it, not {after}")
    if row.max_concurrent is not None and count and after > row.max_concurrent:
        last = _handed(row)[-1].execution
        return Fault(
            f"execution {last} is handed out above the cap of {row.max_concurrent}:"
            f" {after} are with workers then",
            last,
        )
    return None
