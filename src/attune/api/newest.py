"""Pages of what happens: newest first, without totals unless somebody asks for them.

`page` counts from 1, as everywhere. Whoever goes deep does better with `before`, which costs the same on every page
and does not slip when new rows come in: each page names the next one in `next_before`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar

import pydantic
from fastapi import Depends

from attune.api.pages import IncludeTotal, PageOf, Pagination, Wanted
from attune.api.row_ids import Before
from attune.pipeline.listing import Window


class Row(Protocol):
    @property
    def id(self) -> int: ...


T = TypeVar("T")
R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class WantedNewest:
    page: Wanted
    before: int | None
    include_total: bool

    @property
    def window(self) -> Window:
        return Window(self.page.reach, self.page.offset, self.before)


async def wanted_newest(
    page: PageOf, before: Before = None, include_total: IncludeTotal = False
) -> WantedNewest:
    return WantedNewest(page, before, include_total)


NewestOf = Annotated[WantedNewest, Depends(wanted_newest)]


class NewestPagination(Pagination):
    """`next_before` is absent on the last page."""

    next_before: int | None = None


class NewestPage(pydantic.BaseModel, Generic[T]):
    items: list[T]
    pagination: NewestPagination


def newest_page(
    wanted: WantedNewest, reached: Sequence[R], shown: Callable[[R], T], total: int | None
) -> NewestPage[T]:
    """From up to `wanted.window.limit` rows, one more than are shown."""
    size = wanted.page.page_size
    rows, has_next = reached[:size], len(reached) > size
    return NewestPage(
        items=[shown(row) for row in rows],
        pagination=NewestPagination(
            page=wanted.page.page,
            page_size=size,
            has_next=has_next,
            has_previous=wanted.page.page > 1 or wanted.before is not None,
            total_items=total,
            total_pages=None if total is None else -(-total // size),
            next_before=rows[-1].id if has_next else None,
        ),
    )
