"""Results as a table for people and as JSON for machines."""

from typing import Any

from bench.measure import Result


def as_text(title: str, results: list[Result]) -> str:
    by_name = {result.name: result for result in results}
    width = max(len(result.name) for result in results)
    lines = [title, f"  {'case':{width}}  {'per second':>12}  {'spread':>7}  beside"]
    for result in results:
        line = f"  {result.name:{width}}  {result.rate:>12,.0f}  {result.spread:>6.0%}"
        if result.beside:
            ratio = result.rate / by_name[result.beside].rate
            line += f"   {ratio:.2f} of {result.beside}"
        lines.append(line)
    return "\n".join(lines)


def as_json(results: list[Result]) -> list[dict[str, Any]]:
    by_name = {result.name: result for result in results}
    return [
        {
            "name": result.name,
            "per_second": round(result.rate, 1),
            "spread": round(result.spread, 3),
            "beside": result.beside,
            "ratio": round(result.rate / by_name[result.beside].rate, 3) if result.beside else None,
        }
        for result in results
    ]
