"""A repeated request is answered with what the first one made; never with what the caller may not know."""

import asyncio
from typing import Any

import pytest

from attune.kernel.ids import EventId, IdentityId
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.requests import Order
from tests.contract.api.asgi import Client
from tests.contract.api.plant import EXECUTIONS, Plant

EVENTS = "/api/v1/events"
ECHO = {"action_ref": "core.echo", "idempotency_key": "k"}
ORDER = {"trigger_ref": "shop.order", "idempotency_key": "k", "payload": {"n": 1}}


async def count(client: Client, path: str) -> int:
    found = (await client.get(path, include_total=True)).body["pagination"]["total_items"]
    assert isinstance(found, int)
    return found


async def runner(quiet: Plant, login: str) -> Client:
    await quiet.callers.permission_set(
        f"core.{login}", {"resource": "actions", "actions": ["execute"]}
    )
    return await quiet.client(login, f"core.{login}")


async def teller(quiet: Plant, login: str, *actions: str) -> Client:
    """One who may tell of events in the pack shop alone."""
    grant = {"resource": "events", "actions": ["create", *actions]}
    await quiet.callers.permission_set(
        f"core.{login}", {**grant, "constraints": {"pack_refs": ["shop"]}}
    )
    return await quiet.client(login, f"core.{login}")


async def test_a_repeated_bulk_request_makes_nothing_twice(quiet: Plant, watcher: Client) -> None:
    keyed = [{**ECHO, "idempotency_key": f"k{n}"} for n in (1, 2)]
    body = {"executions": [*keyed, {"action_ref": "core.echo"}, keyed[0]]}
    first = await watcher.post(f"{EXECUTIONS}/execute-many", body)
    again = await watcher.post(f"{EXECUTIONS}/execute-many", body)
    assert (first.status, again.status) == (201, 201)
    ids = [[each["id"] for each in answer.data] for answer in (first, again)]
    assert ids[0][0] == ids[0][3] == ids[1][0] == ids[1][3]
    assert ids[0][1] == ids[1][1]
    assert ids[0][2] != ids[1][2]
    assert await count(watcher, EXECUTIONS) == 4


async def test_repeated_events_are_told_once(quiet: Plant, watcher: Client) -> None:
    await quiet.rule()
    answers = await asyncio.gather(*(watcher.post(EVENTS, ORDER) for _ in range(5)))
    assert {answer.status for answer in answers} == {201}
    [event] = {answer.data["id"] for answer in answers}
    other = {**ORDER, "idempotency_key": "other", "payload": {"n": 2}}
    body = {"events": [other, ORDER, {**other, "payload": {"n": 3}}]}
    for _ in range(2):
        many = await watcher.post(f"{EVENTS}/many", body)
        assert many.status == 201
        assert [each["payload"]["n"] for each in many.data] == [2, 1, 2]
        assert many.data[1]["id"] == event
    assert await count(watcher, EVENTS) == 2


async def test_a_bulk_request_with_somebody_elses_key_makes_nothing(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.order(watcher, "core.echo", idempotency_key="k")
    stranger = await runner(quiet, "stranger")
    body = {"executions": [{"action_ref": "core.echo"}, ECHO]}
    refused = await stranger.post(f"{EXECUTIONS}/execute-many", body)
    assert (refused.status, list(refused.body["details"])) == (409, ["field"])
    assert "idempotency_key" in refused.body["error"]
    assert await count(watcher, EXECUTIONS) == 1


async def test_who_may_read_executions_is_given_the_first_one_by_its_key(
    quiet: Plant, watcher: Client
) -> None:
    stranger = await runner(quiet, "ann")
    first = await quiet.order(stranger, "core.echo", idempotency_key="k")
    assert (await quiet.order(watcher, "core.echo", idempotency_key="k"))["id"] == first["id"]


async def test_a_key_that_is_taken_in_between_shows_nothing(
    quiet: Plant, watcher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = await runner(quiet, "late")
    request = quiet.flow.request
    theirs = IdentityId((await watcher.get("/auth/me")).data["id"])
    others = Order((Request(action_ref="core.echo", idempotency_key="k", executor=theirs),))

    async def overtaken(order: Order) -> list[Execution]:
        await request(others)
        return await request(order)

    monkeypatch.setattr(quiet.flow, "request", overtaken)
    refused = await stranger.post(f"{EXECUTIONS}/execute", ECHO)
    assert (refused.status, "data" in refused.body) == (409, False)
    assert await count(watcher, EXECUTIONS) == 1


async def test_a_program_that_runs_again_finds_the_children_of_its_first_attempt(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.callers.permission_set(
        "core.starts", {"resource": "actions", "actions": ["execute"]}
    )
    parent = await quiet.order(watcher, "core.echo")
    other = await quiet.order(watcher, "core.echo")
    program = quiet.running_as(parent["id"], parent["executor"], "core.starts")
    child = await quiet.order(program, "core.echo", idempotency_key="child")
    assert child["parent"] == parent["id"]
    body = {**ECHO, "idempotency_key": "child"}
    again = await program.post(f"{EXECUTIONS}/execute", body)
    assert (again.status, again.data["id"]) == (201, child["id"])
    elsewhere = quiet.running_as(other["id"], other["executor"], "core.starts")
    assert (await elsewhere.post(f"{EXECUTIONS}/execute", body)).status == 409


async def test_a_key_never_shows_an_event_that_the_caller_may_not_read(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.rule()
    secret = {"trigger_ref": "core.alert", "idempotency_key": "k", "payload": {"secret": 1}}
    assert (await watcher.post(EVENTS, secret)).status == 201
    for login, actions in (("blind", ()), ("clerk", ("read",))):
        caller = await teller(quiet, login, *actions)
        for path, body in ((EVENTS, ORDER), (f"{EVENTS}/many", {"events": [dict(ORDER)]})):
            refused = await caller.post(path, body)
            assert (refused.status, b"secret" in refused.raw) == (409, False)
            assert "idempotency_key" in refused.body["error"]
    assert await count(watcher, EVENTS) == 1


async def test_who_may_only_tell_of_events_may_still_repeat_himself(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.rule()
    blind = await teller(quiet, "sensor")
    first = await blind.post(EVENTS, ORDER)
    await quiet.flow.process_events([EventId(first.data["id"])])
    again = await blind.post(EVENTS, ORDER)
    assert (again.status, again.data) == (201, first.data)
    seen = (await watcher.post(EVENTS, ORDER)).data
    assert [each["rule_ref"] for each in seen["rules"]] == ["shop.on_order"]
    other: dict[str, Any]
    for other in ({"payload": {"n": 2}}, {"payload": {"n": True}}, {"config": {"a": 1}}):
        assert (await blind.post(EVENTS, {**ORDER, **other})).status == 409
    keyed = {**ORDER, "idempotency_key": "b"}
    twice = {"events": [keyed, {**keyed, "payload": 7}]}
    both = (await blind.post(f"{EVENTS}/many", twice)).data
    assert both[0] == both[1]
    assert await count(watcher, EVENTS) == 2


async def test_an_event_s_key_that_is_taken_in_between_shows_nothing(
    quiet: Plant, watcher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await quiet.rule()
    blind = await teller(quiet, "late")
    record = quiet.flow.record_events
    theirs = NewEvent(trigger_ref="core.alert", payload={"secret": 1}, idempotency_key="k")

    async def overtaken(new: list[NewEvent]) -> list[Event]:
        await record([theirs])
        return await record(new)

    monkeypatch.setattr(quiet.flow, "record_events", overtaken)
    refused = await blind.post(EVENTS, ORDER)
    assert (refused.status, b"secret" in refused.raw) == (409, False)
