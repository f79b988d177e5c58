"""`client.decisions`: the log of what the queues decided."""

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

import msgspec

from attune.client.calls import Call, Wrapped, path_of
from attune.client.operations import Listing, Namespace, Operation, W
from attune.kernel.ids import LaneId

_LARGEST_PAGE: Final = 1000


class DecisionFilters(TypedDict, total=False):
    """Lane 0 is the whole system. `after` is `next` of a page; a page holds at most 1000."""

    since: datetime
    lane: int
    action_ref: str
    after: str
    limit: int


class LoggedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction decided in one lane; each item is a word and its values, as the API describes them."""

    lane: LaneId
    number: int
    at: datetime
    active_before: int
    active_after: int
    queue_length: int
    items: list[list[Any]]
    max_concurrent: int | None = None
    reason: str | None = None
    action_ref: str | None = None
    group: Any = None


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is null at the end; a page before it may be short."""

    items: list[LoggedDecision]
    next: str | None = None


class Decisions(Namespace[W]):
    @Operation
    async def list(self, **filters: Unpack[DecisionFilters]) -> DecisionPage:
        """Lane after lane, each by number. For administrators."""
        return await self._page(filters)

    @Listing
    async def iterate(
        self, **filters: Unpack[DecisionFilters]
    ) -> AsyncGenerator[LoggedDecision, None]:
        """All of them, page by page."""
        wanted: dict[str, Any] = {"limit": _LARGEST_PAGE, **filters}
        while True:
            page = await self._page(wanted)
            for item in page.items:
                yield item
            if page.next is None:
                return
            wanted["after"] = page.next

    async def _page(self, filters: Mapping[str, Any]) -> DecisionPage:
        since = filters.get("since")
        query = {**filters, "since": None if since is None else since.isoformat()}
        call: Call[DecisionPage] = Call(
            "GET",
            path_of("admin", "decisions"),
            Wrapped[DecisionPage],
            wrapped=True,
            query=query,
            repeatable=True,
        )
        return await self._session.run(call)
