"""How pages are asked for and answered."""

from attune.api.pages import Wanted, open_page_of, page_of, wanted_page


async def test_of_several_synonyms_the_first_one_counts_and_none_is_fifty() -> None:
    assert await wanted_page() == Wanted(1, 50)
    assert await wanted_page(limit=7) == Wanted(1, 7)
    assert await wanted_page(2, 5, 6, 7) == Wanted(2, 5)
    assert await wanted_page(2, None, 6, 7) == Wanted(2, 6)


async def test_a_large_page_is_served_as_a_hundred() -> None:
    assert await wanted_page(page_size=1000) == Wanted(1, 100)


def test_a_counted_page_has_its_totals() -> None:
    for number, total, has_next, pages in ((1, 5, True, 3), (3, 5, False, 3), (1, 0, False, 0)):
        shown = page_of(Wanted(number, 2), ["x"], total=total).model_dump()["pagination"]
        assert (shown["has_next"], shown["has_previous"]) == (has_next, number > 1)
        assert (shown["total_items"], shown["total_pages"]) == (total, pages)


def test_a_page_that_was_not_counted_leaves_the_totals_out() -> None:
    wanted = Wanted(2, 2)
    assert (wanted.reach, wanted.offset) == (3, 2)
    for reached, has_next in ((["a", "b", "c"], True), (["a", "b"], False), ([], False)):
        shown = open_page_of(wanted, reached).model_dump()
        assert shown["items"] == reached[:2]
        assert shown["pagination"] == {
            "page": 2, "page_size": 2, "has_next": has_next, "has_previous": True,
        }  # fmt: skip
    counted = open_page_of(wanted, ["a"], total=3).model_dump()["pagination"]
    assert (counted["total_items"], counted["total_pages"]) == (3, 2)


def test_a_page_far_beyond_is_a_number_that_databases_take() -> None:
    assert Wanted(10**40, 100).offset < 2**63
