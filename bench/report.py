"""Results as a table for people."""

from collections.abc import Sequence

from bench.results import RATE, Result, by_name


def as_text(title: str, results: Sequence[Result]) -> str:
    known = by_name(results)
    width = max((len(result.name) for result in results), default=0)
    lines = [title, f"  {'case':{width}}  {'median':>14}  {'spread':>7}  beside"]
    lines += [f"  {result.name:{width}}  {_values(result, known)}" for result in results]
    return "\n".join(lines)


def shown(result: Result) -> str:
    """The median with its unit, with as many digits as say something."""
    if result.median is None:
        return "-"
    if result.unit == RATE:
        return f"{result.median:,.0f}/s"
    digits = 0 if result.median >= 100 else 1 if result.median >= 10 else 2
    return f"{result.median:,.{digits}f} {result.unit}"


def _values(result: Result, known: dict[str, Result]) -> str:
    spread = "" if result.spread is None else f"{result.spread:.0%}"
    line = f"{shown(result):>14}  {spread:>7}"
    ratio = result.ratio(known)
    if ratio is not None:
        line += f"  {ratio:.2f} of {result.beside}"
    if result.note:
        line += f"  ({result.note})"
    return line.rstrip()
