"""Calls of webhooks as senders see them."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.contract.api.asgi import Client, Reply
from tests.contract.api.plant import EXECUTIONS, Plant

SECRET = "a secret of the sender"


async def opened(plant: Plant, client: Client, **config: Any) -> str:
    """The address of shop.order's webhook."""
    await plant.rule()
    body = {"webhook_config": config} if config else None
    made = await client.post("/api/v1/triggers/shop.order/webhooks/enable", body)
    return str(made.data["webhook_url"])


async def call(
    plant: Plant, path: str, body: Any, headers: Mapping[str, str] | None = None
) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await Client(plant.app).send("POST", path, raw, headers)


async def count(plant: Plant) -> int:
    found: int = await plant.value(int, "SELECT count(*) FROM event")
    return found


def signature(body: bytes, algorithm: str = "sha256", secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, algorithm).hexdigest()


async def test_a_call_becomes_an_event_and_an_execution(plant: Plant, operator: Client) -> None:
    path = await opened(plant, operator)
    sent = {"payload": {"a": {"b": [1]}}, "source_ip": "10.0.0.1", "headers": {"X": "y"}}
    answer = await call(plant, path, sent)
    assert (answer.status, answer.data["message"]) == (200, "Webhook received successfully")
    assert answer.data["trigger_ref"] == "shop.order"
    assert answer.data["received_at"]
    event = (await operator.get(f"/api/v1/events/{answer.data['event_id']}")).data
    assert (event["payload"], event["source_ref"]) == ({"a": {"b": [1]}}, "webhook")
    assert (event["rule"], event["source"]) == (None, None)
    assert event["config"] == {"source_ip": "10.0.0.1", "headers": {"X": "y"}}
    [execution] = (await operator.get(EXECUTIONS)).body["items"]
    assert (execution["rule_ref"], execution["trigger_ref"]) == ("shop.on_order", "shop.order")


async def test_any_payload_is_taken_whatever_the_media_type(quiet: Plant, watcher: Client) -> None:
    path = await opened(quiet, watcher)
    payloads: list[Any] = [{}, [], None, "text", 7]
    for payload in payloads:
        answer = await call(quiet, path, {"payload": payload}, {"content-type": "text/plain"})
        assert answer.status == 200, payload
        event = (await watcher.get(f"/api/v1/events/{answer.data['event_id']}")).data
        assert event["payload"] == ({} if payload is None else payload)


async def test_a_body_that_cannot_be_read_is_refused_before_the_key_is_looked_at(
    quiet: Plant, watcher: Client
) -> None:
    path = await opened(quiet, watcher)
    for key in (path, "/api/v1/webhooks/wh_nobody"):
        for body in (b"", b"{", b"nonsense", b'{"payload": "\xff"}'):
            assert (await call(quiet, key, body)).status == 400, body
        for body in (b"{}", b"[]", b"7", b'{"payload": "\\u0000"}', b'{"payload": 1e999}'):
            assert (await call(quiet, key, body)).status == 422, body
    assert await count(quiet) == 0


async def test_a_key_that_nobody_has_is_404(quiet: Plant, watcher: Client) -> None:
    path = await opened(quiet, watcher)
    sent: dict[str, Any] = {"payload": {}}
    assert (await call(quiet, "/api/v1/webhooks/wh_nobody", sent)).status == 404
    assert (await call(quiet, "/api/v1/webhooks/%00", sent)).status == 404
    await watcher.post("/api/v1/triggers/shop.order/disable")
    assert (await call(quiet, path, sent)).status == 404
    await watcher.post("/api/v1/triggers/shop.order/enable")
    assert (await call(quiet, path, sent)).status == 200
    fresh = await watcher.post("/api/v1/triggers/shop.order/webhooks/regenerate")
    assert (await call(quiet, path, sent)).status == 404
    assert (await call(quiet, fresh.data["webhook_url"], sent)).status == 200
    await watcher.post("/api/v1/triggers/shop.order/webhooks/disable")
    assert (await call(quiet, fresh.data["webhook_url"], sent)).status == 404


async def test_the_size_is_bounded(quiet: Plant, watcher: Client) -> None:
    path = await opened(quiet, watcher, payload_size_limit_kb=1)
    fits = {"payload": "x" * (1024 - len('{"payload": ""}'))}
    assert (await call(quiet, path, fits)).status == 200
    assert (await call(quiet, path, {"payload": fits["payload"] + "x"})).status == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"x-forwarded-for": "10.1.2.3"}, 200),
        ({"x-forwarded-for": "10.1.2.3, 8.8.8.8"}, 200),
        ({"x-forwarded-for": "8.8.8.8, 10.1.2.3", "x-real-ip": "10.1.2.3"}, 403),
        ({"x-real-ip": "192.168.7.7"}, 200),
        ({"x-real-ip": "192.168.7.8"}, 403),
        ({"x-forwarded-for": "10.1.2.3:4711"}, 200),
        ({"x-forwarded-for": "::ffff:10.1.2.3"}, 200),
        ({"x-forwarded-for": "[2001:db8::1]:80"}, 200),
        ({"x-forwarded-for": "nobody"}, 403),
    ],
)
async def test_the_address_of_the_caller_counts(
    quiet: Plant, watcher: Client, headers: dict[str, str], status: int
) -> None:
    ips = ["10.0.0.0/8", "192.168.7.7", "2001:db8::/32"]
    path = await opened(quiet, watcher, ip_whitelist={"enabled": True, "ips": ips})
    assert (await call(quiet, path, {"payload": {}}, headers)).status == status


async def test_the_first_calls_of_a_window_pass_for_each_address(
    quiet: Plant, watcher: Client
) -> None:
    limit = {"enabled": True, "requests": 2, "window_seconds": 3600}
    path = await opened(quiet, watcher, rate_limit=limit)
    here, there = {"x-real-ip": "10.0.0.1"}, {"x-real-ip": "10.0.0.2"}
    answers = [await call(quiet, path, {"payload": {}}, here) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert 3590 <= int(answers[-1].headers["retry-after"]) <= 3600
    assert (await call(quiet, path, {"payload": {}}, there)).status == 200
    assert await count(quiet) == 3


async def test_a_signature_is_over_the_raw_body(quiet: Plant, watcher: Client) -> None:
    config = {"enabled": True, "secret": SECRET, "algorithm": "sha256"}
    path = await opened(quiet, watcher, hmac=config)
    body = b'{ "payload":   {"x": 1} }'
    right = signature(body)
    for good in (
        {"x-webhook-signature": f"sha256={right}"},
        {"x-hub-signature-256": f"sha256={right}"},
        {"x-webhook-signature": right.upper()},
        {"x-hub-signature-256": right},
    ):
        assert (await call(quiet, path, body, good)).status == 200, good
    for wrong in (
        {},
        {"x-webhook-signature": ""},
        {"x-webhook-signature": "nonsense"},
        {"x-webhook-signature": f"sha1={signature(body, 'sha1')}"},
        {"x-webhook-signature": f"sha512={right}"},
        {"x-webhook-signature": f"sha256={signature(body, secret='another')}"},
        {"x-webhook-signature": f"sha256={right[:-1]}"},
        {"x-webhook-signature": "sha256=" + "é" * 64},
        {"x-webhook-signature": hashlib.sha256(body).hexdigest()},
    ):
        assert (await call(quiet, path, body, wrong)).status == 401, wrong
    assert (await call(quiet, path, body + b" ", {"x-webhook-signature": right})).status == 401
    assert await count(quiet) == 4


@pytest.mark.parametrize("algorithm", ["sha512", "sha1"])
async def test_other_algorithms_are_known(quiet: Plant, watcher: Client, algorithm: str) -> None:
    config = {"enabled": True, "secret": SECRET, "algorithm": algorithm}
    path = await opened(quiet, watcher, hmac=config)
    body = b'{"payload": {}}'
    headers = {"x-webhook-signature": f"{algorithm}={signature(body, algorithm)}"}
    assert (await call(quiet, path, body, headers)).status == 200


async def test_checks_come_in_the_order_of_the_contract(quiet: Plant, watcher: Client) -> None:
    path = await opened(
        quiet,
        watcher,
        payload_size_limit_kb=1,
        ip_whitelist={"enabled": True, "ips": ["10.0.0.1"]},
        rate_limit={"enabled": True, "requests": 1, "window_seconds": 3600},
        hmac={"enabled": True, "secret": SECRET},
    )
    small: dict[str, Any] = {"payload": {}}
    large = {"payload": "x" * 2000}
    inside = {"x-real-ip": "10.0.0.1"}
    assert (await call(quiet, path, large)).status == 400
    assert (await call(quiet, path, small)).status == 403
    assert (await call(quiet, path, small, inside)).status == 401
    assert (await call(quiet, path, small, inside)).status == 429
