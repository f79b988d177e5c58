"""Pages of lists: how one is asked for, and how it looks.

    @routes.get("/things")
    async def things(wanted: PageOf) -> Page[Thing]:
        found = await database.read(rows.page, THINGS, wanted.page, wanted.page_size)
        return page_of(wanted, map(thing, found.items), total=found.total)

A list that grows without end does not count itself: it reads one row more than it shows, `wanted.reach`, and
leaves the totals out unless `include_total` asks for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Final, Generic, TypeVar

import pydantic
from fastapi import Depends, Query
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

T = TypeVar("T")

DEFAULT_SIZE: Final = 50
LARGEST_SIZE: Final = 100

_LARGEST_OFFSET: Final = 2**62


@dataclass(frozen=True, slots=True)
class Wanted:
    page: int
    page_size: int

    @property
    def offset(self) -> int:
        """How many rows come before; a number that every database can take."""
        return min((self.page - 1) * self.page_size, _LARGEST_OFFSET)

    @property
    def reach(self) -> int:
        """How many rows to read in order to know whether there is a next page."""
        return self.page_size + 1


_Size = Annotated[
    int | None, Query(ge=1, description="Items of a page; above 100 it is served as 100.")
]


async def wanted_page(
    page: Annotated[int, Query(ge=1, description="Counts from 1.")] = 1,
    page_size: _Size = None,
    per_page: Annotated[int | None, Query(ge=1, description="The same as page_size.")] = None,
    limit: Annotated[int | None, Query(ge=1, description="The same as page_size.")] = None,
) -> Wanted:
    """Of several synonyms the first one counts."""
    size = page_size or per_page or limit or DEFAULT_SIZE
    return Wanted(page, min(size, LARGEST_SIZE))


PageOf = Annotated[Wanted, Depends(wanted_page)]
IncludeTotal = Annotated[bool, Query(description="Count all pages, too.")]


class Pagination(pydantic.BaseModel):
    """The totals are absent where nobody counted."""

    page: int
    page_size: int
    has_next: bool
    has_previous: bool
    total_items: Annotated[int | None, Field(description="Of all pages.")] = None
    total_pages: int | None = None

    @model_serializer(mode="wrap")
    def _without_unknown_totals(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]
    pagination: Pagination


def page_of(wanted: Wanted, items: Iterable[T], *, total: int) -> Page[T]:
    """A page of a list that was counted."""
    pages = ceil(total / wanted.page_size)
    return _page(wanted, list(items), has_next=wanted.page < pages, total=total)


def open_page_of(wanted: Wanted, reached: list[T], *, total: int | None = None) -> Page[T]:
    """A page of a list that was not counted, from up to `wanted.reach` items."""
    shown = reached[: wanted.page_size]
    return _page(wanted, shown, has_next=len(reached) > wanted.page_size, total=total)


def _page(wanted: Wanted, items: list[T], *, has_next: bool, total: int | None) -> Page[T]:
    return Page(
        items=items,
        pagination=Pagination(
            page=wanted.page,
            page_size=wanted.page_size,
            has_next=has_next,
            has_previous=wanted.page > 1,
            total_items=total,
            total_pages=None if total is None else ceil(total / wanted.page_size),
        ),
    )
