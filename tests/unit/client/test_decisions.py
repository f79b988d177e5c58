"""`client.decisions`: the log is read page by page to its end."""

from datetime import UTC, datetime
from typing import Any

from tests.unit.client.conftest import Caller
from tests.unit.client.fake import MOMENT, FakeServer, data

DECISIONS = "/api/v1/admin/decisions"


def row(lane: int, number: int) -> dict[str, Any]:
    return {
        "lane": lane,
        "number": number,
        "at": MOMENT,
        "active_before": 0,
        "active_after": 1,
        "queue_length": 0,
        "max_concurrent": None,
        "reason": None,
        "action_ref": "core.echo",
        "group": {"host": "a"},
        "items": [["joined", 7, 1, 2, None]],
        "a_field_of_tomorrow": 1,
    }


def page(*rows: dict[str, Any], then: str | None = None) -> Any:
    return data({"items": list(rows), "next": then})


async def test_all_pages_are_read_and_each_is_asked_for_from_where_the_last_one_ended(
    caller: Caller, server: FakeServer
) -> None:
    first, empty, last = page(row(2, 1), then="2.1"), page(then="4.9"), page(row(5, 3))
    server.on("GET", DECISIONS, first, empty, last)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    found = await caller.all(caller.client.decisions.iterate(since=since, action_ref="core.echo"))
    assert [(each.lane, each.number) for each in found] == [(2, 1), (5, 3)]
    assert (found[0].group, found[0].items) == ({"host": "a"}, [["joined", 7, 1, 2, None]])
    asked = [dict(each.url.params) for each in server.asked("GET", DECISIONS)]
    whole = {"since": "2026-01-01T00:00:00+00:00", "action_ref": "core.echo", "limit": "1000"}
    assert asked == [whole, {**whole, "after": "2.1"}, {**whole, "after": "4.9"}]


async def test_one_page_tells_where_the_next_begins(caller: Caller, server: FakeServer) -> None:
    server.on("GET", DECISIONS, page(row(2, 1), then="2.1"))
    found = await caller.call(caller.client.decisions.list, lane=2, limit=1)
    assert ([each.number for each in found.items], found.next) == ([1], "2.1")
    [request] = server.requests
    assert dict(request.url.params) == {"lane": "2", "limit": "1"}
