"""What the lists of the API have in common: a page, one by its ref or id, and all of them one after another."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar, Generic, TypeVar, Unpack

from attune.client.calls import Call, get, get_page, path_of
from attune.client.models import Page
from attune.client.operations import Listing, Namespace, Operation, W
from attune.client.requests import Paging

S = TypeVar("S")
D = TypeVar("D")

_LARGEST_PAGE = 100


class Collection(Namespace[W], Generic[W, S, D]):
    """`S` is what a list has of each, `D` the whole of one; `noun` stands in its path."""

    noun: ClassVar[str]
    summary: ClassVar[type[Any]]
    detail: ClassVar[type[Any]]

    @Operation
    async def get(self, ref: str | int) -> D:
        """By its ref, or by its id."""
        found: D = await self._session.run(self._one(ref))
        return found

    def _one(self, ref: str | int) -> Call[Any]:
        return get(path_of(self.noun, ref), self.detail)

    def _path(self, *steps: object) -> str:
        return path_of(self.noun, *steps)

    async def _page(self, filters: Mapping[str, Any]) -> Page[S]:
        return await self._session.run(get_page(self._path(), self.summary, filters))

    async def _all(self, filters: Mapping[str, Any]) -> AsyncGenerator[S, None]:
        """Page by page. New ones push others onto the next page; these are not told of twice."""
        wanted = {"page_size": _LARGEST_PAGE, **filters, "page": filters.get("page", 1)}
        before: set[int] = set()
        while True:
            page = await self._page(wanted)
            ids = {_id(item) for item in page}
            for item in page:
                if _id(item) not in before:
                    yield item
            if not page.pagination.has_next:
                return
            before = ids
            wanted["page"] += 1


class Catalog(Collection[W, S, D]):
    """A collection that is listed without filters."""

    @Operation
    async def list(self, **paging: Unpack[Paging]) -> Page[S]:
        return await self._page(paging)

    @Listing
    async def iterate(self, **paging: Unpack[Paging]) -> AsyncGenerator[S, None]:
        async for item in self._all(paging):
            yield item


def _id(item: Any) -> int:
    found: int = item.id
    return found
