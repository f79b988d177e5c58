"""/admin/decisions as administrators read it: page by page, lane after lane, without a gap."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from attune.kernel.ids import LaneId
from attune.pipeline.queues import decision_queries
from attune.pipeline.queues.decisions import Decision, Handed, Item, decoded
from attune.pipeline.queues.verify import Replay
from attune.store import schema
from attune.store.database import Tx
from tests.contract.api.asgi import Client
from tests.contract.api.world import World
from tests.unit.pipeline.lane_histories import START, Lane

DECISIONS = "/api/v1/admin/decisions"
KEYS = {
    "action_ref", "active_after", "active_before", "at", "group", "items", "lane", "max_concurrent",
    "number", "queue_length", "reason",
}  # fmt: skip
_LANE = """
    INSERT INTO lane (id, action_ref, group_key, paused, next_sequence, queue_length, active_count,
                      total_enqueued, total_completed, last_enqueued_at, created, updated)
    VALUES (:id, :ref, :group_key, false, 1, 0, 0, 0, 0, :now, :now, :now)
"""


def busy(id_: int, rounds: int = 4) -> Lane:
    """A lane with three decisions for each round."""
    lane = Lane(id=id_, limit=1)
    for _ in range(rounds):
        lane.do(("join", 2), ("join", 0))
        lane.do(("end", 0))
        lane.do(("end", 0))
    return lane


async def keep(world: World, ref: str | None, rows: Sequence[Decision], group: str = "") -> None:
    async def step(tx: Tx) -> None:
        if ref is not None:
            await tx.execute(_LANE, id=rows[0].lane, ref=ref, group_key=group, now=START)
        await tx.insert(schema.decision, rows)

    await world.database.run(step)


async def all_pages(client: Client, **query: Any) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    after: dict[str, Any] = {}
    while True:
        data = (await client.get(DECISIONS, **query, **after)).data
        pages.append(data["items"])
        if data["next"] is None:
            return pages
        after = {"after": data["next"]}


async def keys(client: Client, **query: Any) -> list[tuple[int, int]]:
    pages = await all_pages(client, **query)
    return [(row["lane"], row["number"]) for page in pages for row in page]


def decision(row: dict[str, Any]) -> Decision:
    own = {name: row[name] for name in Decision.__struct_fields__ if name != "items"}
    whole = msgspec.convert({**own, "items": ()}, Decision)
    return msgspec.structs.replace(whole, items=decoded(row["items"]))


async def test_a_decision_is_shown_as_it_was_stored_with_its_lane(
    world: World, admin: Client
) -> None:
    lane = Lane(id=4)
    lane.do(("join", 2, True))
    await keep(world, "core.echo", lane.rows, group='{"host":"a"}')
    [row] = (await admin.get(DECISIONS)).data["items"]
    assert set(row) == KEYS
    assert (row["lane"], row["number"], row["action_ref"]) == (4, 1, "core.echo")
    assert (row["group"], row["at"]) == ({"host": "a"}, "2026-01-01T00:00:01Z")
    assert row["items"] == [["joined", 1, 1, 2, None]]
    assert decision(row) == lane.rows[0]


async def test_pages_of_any_size_hold_every_lane_by_its_numbers(
    world: World, admin: Client
) -> None:
    for id_ in (2, 7, 3):
        await keep(world, f"core.a{id_}", busy(id_).rows)
    for limit in (1, 5, 12, 13, 1000, 5000):
        pages = await all_pages(admin, limit=limit)
        found = [(row["lane"], row["number"]) for page in pages for row in page]
        assert found == [(lane, number) for lane in (2, 3, 7) for number in range(1, 13)]
        assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        assert len(pages) == -(-36 // limit)


async def test_what_is_read_proves_that_order_and_limits_held(world: World, admin: Client) -> None:
    for id_ in (2, 3):
        await keep(world, f"core.a{id_}", _renamed(busy(id_), id_))
    await keep(world, None, [_hand_off()])
    replay = Replay()
    for page in await all_pages(admin, limit=7):
        for row in page:
            replay.feed(decision(row))
    proof = replay.proof()
    assert proof.violation is None
    assert (proof.lanes, proof.decisions, proof.admissions) == (2, 25, 16)


def _renamed(lane: Lane, times: int) -> list[Decision]:
    return [
        msgspec.structs.replace(row, items=tuple(_other(item, 1000 * times) for item in row.items))
        for row in lane.rows
    ]


def _other(item: Item, more: int) -> Item:
    known = getattr(item, "execution", None)
    return item if known is None else msgspec.structs.replace(item, execution=known + more)


def _hand_off() -> Decision:
    return msgspec.structs.replace(
        busy(0, rounds=1).rows[0],
        active_after=1,
        queue_length=0,
        max_concurrent=3,
        items=(msgspec.convert(["handed", 1, 2, 4, 1], Handed),),
    )


async def test_lane_and_action_narrow_it_down(world: World, admin: Client) -> None:
    await keep(world, "core.echo", busy(2, 1).rows, '{"host":"a"}')
    await keep(world, "core.echo", busy(5, 1).rows, '{"host":"b"}')
    await keep(world, "core.noop", busy(3, 1).rows)
    await keep(world, None, [_hand_off()])
    echo = [(lane, number) for lane in (2, 5) for number in (1, 2, 3)]
    assert await keys(admin, action_ref="core.echo", limit=2) == echo
    assert await keys(admin, lane=3) == [(3, 1), (3, 2), (3, 3)]
    assert await keys(admin, lane=0) == [(0, 1)]
    assert await keys(admin, lane=3, action_ref="core.echo") == []
    assert await keys(admin, action_ref="core.nothing") == []
    [system] = (await admin.get(DECISIONS, lane=0)).data["items"]
    assert (system["action_ref"], system["group"]) == (None, None)


async def test_since_begins_in_each_lane_at_the_first_that_is_not_older_without_a_gap(
    world: World, admin: Client
) -> None:
    """Clocks differ: a later decision may bear an earlier time, and is not left out for it."""
    rows = busy(2).rows
    rows[6] = msgspec.structs.replace(rows[6], at=START)
    await keep(world, "core.echo", rows)
    await keep(world, "core.noop", busy(3, 1).rows)
    since = (START + timedelta(seconds=6)).isoformat()
    assert await keys(admin, since=since, limit=2) == [(2, number) for number in range(6, 13)]
    assert await keys(admin, since="2027-01-01T00:00:00Z") == []
    zoned = (START + timedelta(seconds=12)).isoformat().replace("+00:00", "Z")
    assert await keys(admin, since=zoned) == [(2, 12)]


async def test_the_log_of_a_pool_is_read_page_by_page_like_that_of_a_lane(
    world: World, admin: Client
) -> None:
    pool = [msgspec.structs.replace(row, lane=LaneId(-7)) for row in busy(2, 1).rows]
    await keep(world, None, pool)
    await keep(world, "core.noop", busy(3, 1).rows)
    numbers = [(-7, number) for number in (1, 2, 3)]
    assert await keys(admin, limit=1) == [*numbers, (3, 1), (3, 2), (3, 3)]
    assert await keys(admin, lane=-7, limit=1) == numbers


async def test_a_cursor_of_another_question_shows_nothing_that_was_not_asked_for(
    world: World, admin: Client
) -> None:
    for id_, ref in ((2, "core.echo"), (3, "core.noop")):
        await keep(world, ref, busy(id_, 1).rows)
    assert await keys(admin, action_ref="core.noop", after="2.1") == [(3, 1), (3, 2), (3, 3)]
    assert await keys(admin, lane=3, after="2.1") == [(3, 1), (3, 2), (3, 3)]
    assert await keys(admin, lane=2, after="3.1") == []


async def test_a_page_ends_early_when_it_would_be_heavy(
    world: World, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_queries, "_BYTES", 100)
    for id_ in (2, 3):
        await keep(world, f"core.a{id_}", busy(id_).rows)
    pages = await all_pages(admin)
    assert 2 < len(pages) <= 24
    assert all(pages)
    found = [(row["lane"], row["number"]) for page in pages for row in page]
    assert found == [(lane, number) for lane in (2, 3) for number in range(1, 13)]


async def test_a_page_looks_into_so_many_lanes_and_goes_on_from_there(
    world: World, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_queries, "_LANES_OF_A_PAGE", 2)
    for id_ in range(2, 9):
        await keep(world, f"core.a{id_}", busy(id_, 1).rows)
    later = busy(9, 3).rows
    await keep(world, "core.a9", later)
    assert len(await keys(admin)) == 7 * 3 + 9
    since = later[5].at.isoformat()
    assert await keys(admin, since=since) == [(9, number) for number in (6, 7, 8, 9)]


WRONG: list[tuple[str, str]] = [
    ("after", "3"),
    ("after", "3.x"),
    ("after", "3.99999999999999999999"),
    ("after", "--1.4"),
    ("since", "yesterday"),
    ("since", "2026-01-01T00:00:00"),
    ("since", "0001-01-01T00:00:00+05:00"),
    ("lane", "all"),
    ("limit", "0"),
    ("action_ref", ""),
]


async def test_a_wish_that_cannot_be_read_names_its_field(admin: Client) -> None:
    for field, value in WRONG:
        answer = await admin.get(DECISIONS, **{field: value})
        assert (answer.status, list(answer.body["details"])) == (422, [field]), value


async def test_only_administrators_read_it(world: World, admin: Client) -> None:
    assert (await world.nobody.get(DECISIONS)).status == 401
    editor = await world.client("editor", "core.editor")
    refused = await editor.get(DECISIONS)
    assert refused.status == 403
    assert refused.body["error"].startswith("The decision log is read by administrators")
    assert (await admin.get(DECISIONS)).status == 200
