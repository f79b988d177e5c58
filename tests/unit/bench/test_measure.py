"""Rounds over all cases, and what is kept of them."""

from collections.abc import Mapping

from bench.measure import CannotTakePart, Case, Done, Gauge, measure
from bench.results import MILLISECONDS, by_name


async def test_each_round_has_every_case_and_the_warm_up_is_not_kept() -> None:
    turns: list[str] = []

    async def work(name: str) -> Done:
        turns.append(name)
        return Done(10, 2.0)

    cases = [Case("a", lambda: work("a")), Case("b", lambda: work("b"), beside="a")]
    results = await measure(cases, rounds=2)

    assert turns == ["a", "b"] * 3
    assert [(one.name, one.values) for one in results] == [("a", [5.0, 5.0]), ("b", [5.0, 5.0])]


async def test_without_a_warm_up_the_first_round_counts() -> None:
    async def work() -> Done:
        return Done(1, 1.0)

    [result] = await measure([Case("a", work)], rounds=1, warm_up=False)
    assert result.values == [1.0]


async def test_a_gauge_gives_a_result_for_each_of_its_values() -> None:
    async def read() -> Mapping[str, float]:
        return {"p50": 2.0, "p99": 9.0}

    results = by_name(
        await measure([Gauge("x", MILLISECONDS, read, beside="y")], rounds=2, warm_up=False)
    )

    assert results.keys() == {"x, p50", "x, p99"}
    assert results["x, p99"].values == [9.0, 9.0]
    assert results["x, p99"].beside == "y, p99"


async def test_one_that_cannot_take_part_says_why_and_is_not_asked_again() -> None:
    asked: list[str] = []

    async def refuse() -> int:
        asked.append("refuse")
        raise CannotTakePart("it has no limit of one")

    async def work() -> Done:
        return Done(1, 1.0)

    out, kept = await measure([Case("out", refuse), Case("kept", work)], rounds=3)

    assert (out.median, out.note, asked) == (None, "it has no limit of one", ["refuse"])
    assert kept.values == [1.0] * 3
