"""/dead-letters as administrators see it, and that nobody else does."""

import asyncio
import base64
from datetime import timedelta
from typing import Any

import pytest

from attune.bus.dead_letters import read_dead_letter
from attune.bus.topology import StageQueue, worker_queue_name
from attune.dead_letters.keeper import DeadLetterKeeper
from attune.dead_letters.steps import keep
from attune.kernel.envelope import encode
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled, MessageType
from attune.store.database import Database
from tests.contract.api.asgi import Client
from tests.contract.api.plant import Plant
from tests.contract.api.world import World
from tests.contract.bus.messages import STAMP, Inbox, enforcement
from tests.contract.identities.rows import NOW
from tests.contract.pipeline.world import eventually

LETTERS = "/api/v1/dead-letters"
EVENTS = StageQueue.EVENT_CREATED.value
ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value
KEYS = {
    "id", "queue", "reason", "error", "message_id", "message_type", "retry_count", "size_bytes",
    "died_at", "replayed_at", "replayed_by", "replay_count", "created", "updated",
}  # fmt: skip
EMPTY_PAGE = {
    "page": 1, "page_size": 50, "has_next": False, "has_previous": False,
    "total_items": 0, "total_pages": 0,
}  # fmt: skip


async def kept(
    database: Database, queue: str = EVENTS, body: bytes = b"{}", reason: str = "failed"
) -> int:
    """The id of a letter that is kept as if it had died."""
    count = len(await ids(database))
    headers = {"x-attune-queue": queue, "x-attune-reason": reason, "x-attune-error": "no"}
    at = NOW + timedelta(seconds=count)
    await database.run(keep, read_dead_letter("x.dlq", headers, body, at), at)
    return max(await ids(database))


async def ids(database: Database) -> list[int]:
    async def ask(tx: Any) -> list[int]:
        found: list[int] = await tx.all(int, "SELECT id FROM dead_letter ORDER BY id")
        return found

    return await database.read(ask)


async def listed(client: Client, **query: Any) -> list[int]:
    return [each["id"] for each in (await client.get(LETTERS, **query)).body["items"]]


async def test_letters_are_listed_newest_first_and_filtered(world: World, admin: Client) -> None:
    assert (await admin.get(LETTERS)).body == {"items": [], "pagination": EMPTY_PAGE}
    known = encode(enforcement(1))
    first = await kept(world.database, EVENTS, known)
    second = await kept(world.database, ENFORCEMENTS, b"poison", "bad_message")
    third = await kept(world.database, EVENTS, b"poison", "expired")
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [third, second, first]),
        ({"queue": EVENTS}, [third, first]),
        ({"queue": ""}, [third, second, first]),
        ({"queue": EVENTS, "reason": "expired"}, [third]),
        ({"reason": "bad_message"}, [second]),
        ({"message_type": "enforcement.created"}, [first]),
        ({"replayed": "False"}, [third, second, first]),
        ({"replayed": "true"}, []),
        ({"page_size": 2}, [third, second]),
        ({"page_size": 2, "page": 2}, [first]),
    ]
    for query, found in expected:
        assert await listed(admin, **query) == found, query
    page = (await admin.get(LETTERS, page_size=2, page=2)).body["pagination"]
    assert (page["total_items"], page["total_pages"], page["has_next"]) == (3, 2, False)
    for wrong in ({"reason": "boredom"}, {"replayed": "perhaps"}, {"page": 0}):
        refused = await admin.get(LETTERS, **wrong)
        assert (refused.status, list(refused.body["details"])) == (422, list(wrong))


async def test_a_list_has_everything_but_the_body(world: World, admin: Client) -> None:
    envelope = enforcement(1).retried()
    await kept(world.database, EVENTS, encode(envelope))
    [shown] = (await admin.get(LETTERS)).body["items"]
    assert set(shown) == KEYS
    assert shown | {
        "queue": EVENTS, "reason": "failed", "error": "no", "retry_count": 1,
        "message_id": str(envelope.message_id), "message_type": "enforcement.created",
        "size_bytes": len(encode(envelope)), "replay_count": 0,
        "replayed_at": None, "replayed_by": None,
    } == shown  # fmt: skip


@pytest.mark.parametrize(
    ("body", "text", "encoding"),
    [
        (b'{"a": "\xc3\xbc"}', '{"a": "ü"}', "utf-8"),
        (b"nul \x00", "nul \0", "utf-8"),
        (b"", "", "utf-8"),
        (b"\xff\x00", base64.b64encode(b"\xff\x00").decode(), "base64"),
    ],
)
async def test_a_letter_is_shown_with_its_body(
    world: World, admin: Client, body: bytes, text: str, encoding: str
) -> None:
    letter = await kept(world.database, EVENTS, body)
    shown = (await admin.get(f"{LETTERS}/{letter}")).data
    assert set(shown) == KEYS | {"body", "body_encoding"}
    assert (shown["body"], shown["body_encoding"]) == (text, encoding)
    assert shown["size_bytes"] == len(body)


async def test_a_letter_that_is_deleted_is_gone(world: World, admin: Client) -> None:
    letter = await kept(world.database)
    deleted = await admin.delete(f"{LETTERS}/{letter}")
    assert deleted.body == {
        "success": True,
        "message": f"The dead letter {letter} was deleted.",
    }
    for number in (letter, 0, 2**70):
        at = f"{LETTERS}/{number}"
        for answer in (
            await admin.get(at),
            await admin.delete(at),
            await admin.post(f"{at}/replay"),
        ):
            assert (answer.status, str(number) in answer.body["error"]) == (404, True)


async def test_dead_letters_are_for_administrators_alone(world: World, admin: Client) -> None:
    letter = await kept(world.database)
    for name in ("core.viewer", "core.editor", "core.executor"):
        other = await world.client(name, name)
        for method, path in (
            ("GET", LETTERS),
            ("GET", f"{LETTERS}/{letter}"),
            ("POST", f"{LETTERS}/{letter}/replay"),
            ("POST", f"{LETTERS}/replay"),
            ("DELETE", f"{LETTERS}/{letter}"),
        ):
            refused = await other.send(method, path)
            assert refused.status == 403, (name, method, path)
            assert "core.admin" in refused.body["error"]
    assert await listed(admin, replayed=False) == [letter]


async def test_a_replay_delivers_and_says_who_did_it(quiet: Plant, watcher: Client) -> None:
    envelope = enforcement(1).retried()
    letter = await kept(quiet.database, EVENTS, encode(envelope))
    me = (await watcher.get("/auth/me")).data["id"]
    shown = (await watcher.post(f"{LETTERS}/{letter}/replay")).data
    assert set(shown) == KEYS
    assert (shown["replayed_by"], shown["replay_count"]) == (me, 1)
    assert shown["replayed_at"] is not None
    inbox = Inbox()
    await quiet.bus.consume(EVENTS, inbox)
    await eventually(lambda: _answer(inbox.envelopes))
    [taken] = inbox.envelopes
    assert (taken.message_id, taken.retry_count) == (envelope.message_id, 0)
    assert await listed(watcher, replayed=True) == [letter]
    again = (await watcher.post(f"{LETTERS}/{letter}/replay", {})).data
    assert again["replay_count"] == 2


async def test_a_letter_whose_queue_is_gone_answers_409_and_is_not_marked(
    quiet: Plant, watcher: Client
) -> None:
    queue = worker_queue_name(WorkerId(4711))
    letter = await kept(quiet.database, queue, encode(enforcement(1)))
    refused = await refused_replay(watcher, letter)
    assert refused == (
        409, f"The queue {queue} is gone with its worker: the message cannot be sent back to it.",
    )  # fmt: skip
    lost = await kept(quiet.database, "attune.unrouted", b"poison", "unrouted")
    status, sentence = await refused_replay(watcher, lost)
    assert (status, "no envelope" in sentence) == (409, True)
    assert await listed(watcher, replayed=False) == [lost, letter]


async def test_without_the_broker_a_replay_answers_503_and_is_not_marked(
    world: World, admin: Client
) -> None:
    letter = await kept(world.database)
    assert (await admin.post(f"{LETTERS}/{letter}/replay")).status == 503
    refused = await admin.post(f"{LETTERS}/replay")
    assert (refused.status, refused.body["details"]) == (503, {"replayed": 0})
    assert await listed(admin, replayed=False) == [letter]


async def test_many_are_replayed_and_counted(quiet: Plant, watcher: Client) -> None:
    many = [await kept(quiet.database, EVENTS, encode(enforcement(n))) for n in range(5)]
    other = await kept(quiet.database, ENFORCEMENTS, b"poison", "bad_message")
    gone = await kept(quiet.database, worker_queue_name(WorkerId(4711)))
    done = (await watcher.post(f"{LETTERS}/replay", {"queue": EVENTS, "limit": 3})).data
    assert done == {"replayed": 3, "refused": [], "remaining": 2}
    assert await listed(watcher, replayed=True) == sorted(many[:3], reverse=True)
    wanted = {"reason": "bad_message", "message_type": "nothing"}
    done = (await watcher.post(f"{LETTERS}/replay", wanted)).data
    assert done == {"replayed": 0, "refused": [], "remaining": 0}
    done = (await watcher.post(f"{LETTERS}/replay")).data
    assert (done["replayed"], done["remaining"]) == (3, 1)
    [refused] = done["refused"]
    assert (refused["id"], "is gone" in refused["error"]) == (gone, True)
    assert await quiet.bus.depth(EVENTS) == 5
    assert other in await listed(watcher, replayed=True)


async def test_a_wrong_choice_is_refused_by_name_and_replays_nothing(
    world: World, admin: Client
) -> None:
    letter = await kept(world.database)
    for wrong, field in (
        ({"reason": "boredom"}, "reason"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"queue": 7}, "queue"),
    ):
        refused = await admin.post(f"{LETTERS}/replay", wrong)
        assert (refused.status, list(refused.body["details"])) == (422, [field])
    assert await listed(admin, replayed=False) == [letter]


async def test_an_order_whose_attempt_is_over_does_nothing_when_it_is_replayed(
    plant: Plant, operator: Client
) -> None:
    made = await plant.order(operator, "core.echo")
    before = await plant.finished(operator, made["id"])
    order = ExecutionScheduled(
        execution_id=ExecutionId(made["id"]), worker_id=WorkerId(before["worker"]), attempt=1
    )
    queue = worker_queue_name(order.worker_id)
    envelope = STAMP.envelope(MessageType.EXECUTION_SCHEDULED, order)
    letter = await kept(plant.database, queue, encode(envelope), "expired")
    assert (await operator.post(f"{LETTERS}/{letter}/replay")).data["replay_count"] == 1
    after = await plant.order(operator, "core.echo")
    assert (await plant.finished(operator, after["id"]))["status"] == "completed"
    assert await plant.bus.depth(queue) == 0
    assert (await operator.get(f"/api/v1/executions/{made['id']}")).data == before


async def test_poison_that_is_replayed_dies_again_and_is_listed_once_more(
    quiet: Plant, watcher: Client
) -> None:
    keeper = DeadLetterKeeper(quiet.bus, quiet.database, quiet.clock)
    await keeper.start()
    await quiet.bus.consume(EVENTS, Inbox())
    await quiet.bus.send_raw(EVENTS, b"poison")
    [first] = await eventually(lambda: listed(watcher))
    await watcher.post(f"{LETTERS}/{first}/replay")
    [second] = await eventually(lambda: listed(watcher, replayed=False))
    assert second != first
    assert await listed(watcher) == [second, first]
    await keeper.stop()


async def refused_replay(client: Client, letter: int) -> tuple[int, str]:
    answer = await client.post(f"{LETTERS}/{letter}/replay")
    return answer.status, answer.body["error"]


async def _answer(value: Any) -> Any:
    await asyncio.sleep(0)
    return value
