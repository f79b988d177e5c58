"""The envelope on the wire: public, versioned, and refused with a reason when it cannot be read."""

import random
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Envelope, Stamp, decode, encode
from attune.kernel.errors import BadMessage
from attune.kernel.ids import (
    ActionId,
    EnforcementId,
    ExecutionId,
    Ids,
    MessageId,
)
from attune.kernel.messages import (
    PAYLOADS,
    EnforcementCreated,
    ExecutionCompleted,
    MessageType,
    Payload,
)
from attune.kernel.statuses import ExecutionStatus

NOW = datetime(2026, 2, 9, 12, 0, 0, 123_456, tzinfo=UTC)


def envelope(*ids: int) -> Envelope:
    return Envelope(
        message_id=MessageId(UUID(int=1)),
        message_type=MessageType.ENFORCEMENT_CREATED,
        source="api",
        timestamp=NOW,
        items=tuple(EnforcementCreated(enforcement_id=EnforcementId(i)) for i in ids),
    )


def test_one_item_is_the_payload_itself() -> None:
    wire = msgspec.json.decode(encode(envelope(7)))
    assert wire == {
        "message_id": "00000000-0000-0000-0000-000000000001",
        "message_type": "enforcement.created",
        "version": 1,
        "source": "api",
        "timestamp": "2026-02-09T12:00:00.123456Z",
        "correlation_id": None,
        "trace_id": None,
        "retry_count": 0,
        "payload": {"enforcement_id": 7},
    }


@pytest.mark.parametrize("ids", [(), (1,), (1, 2, 3)])
def test_any_number_of_items_comes_back(ids: tuple[int, ...]) -> None:
    assert decode(encode(envelope(*ids))) == envelope(*ids)


def test_a_completion_carries_what_the_specification_lists() -> None:
    item = ExecutionCompleted(
        execution_id=ExecutionId(5),
        action_id=ActionId(2),
        action_ref="core.echo",
        status=ExecutionStatus.COMPLETED,
        completed_at=NOW,
        result=msgspec.Raw(b'{"succeeded":true}'),
    )
    assert msgspec.json.decode(msgspec.json.encode(item)) == {
        "execution_id": 5,
        "action_id": 2,
        "action_ref": "core.echo",
        "status": "completed",
        "completed_at": "2026-02-09T12:00:00.123456Z",
        "result": {"succeeded": True},
    }


def test_what_another_program_writes_is_read() -> None:
    body = b"""{
        "message_id": "6f2b1e7e-6c1f-4b0e-9d7e-0d7f6f1a2b3c", "message_type": "enforcement.created",
        "source": "rust", "timestamp": "2026-02-09T12:00:00.123456789+01:00", "extra": [1],
        "payload": {"enforcement_id": 9, "rule_ref": "a.b"}
    }"""
    read = decode(body)
    assert read.items == (EnforcementCreated(enforcement_id=EnforcementId(9)),)
    assert read.timestamp.astimezone(UTC).hour == 11
    assert (read.version, read.retry_count, read.correlation_id) == (1, 0, None)


def changed(**fields: object) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(encode(envelope(1))), **fields})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not an envelope"),
        (b"{", "not an envelope"),
        (b"\xff\xfe", "not an envelope"),
        (b"[]", "not an envelope"),
        (b"{}", "missing required field `message_id`"),
        (changed(version=2), "unknown envelope version 2"),
        (changed(message_type="rain.fell"), "unknown message type 'rain.fell'"),
        (changed(payload={}), "payload is not that of enforcement.created.*enforcement_id"),
        (changed(payload=None), "payload is not that of"),
        (changed(payload={"items": [{"enforcement_id": "x"}]}), "payload is not that of"),
        (changed(timestamp="yesterday"), "timestamp"),
        (changed(timestamp="2026-02-09T12:00:00"), "timezone"),
        (changed(retry_count=-1), "retry_count"),
    ],
)
def test_f28_what_cannot_be_read_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadMessage, match=reason):
        decode(body)


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_refusal(body: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(body)


def test_every_type_has_its_payload() -> None:
    assert set(PAYLOADS) == set(MessageType)
    assert all(issubclass(payload, Payload) for payload in PAYLOADS.values())


def test_a_seed_repeats_the_ids() -> None:
    first = Stamp("a", SystemClock(), Ids(random.Random(7)))
    second = Stamp("a", SystemClock(), Ids(random.Random(7)))
    kind = MessageType.RULE_CREATED
    assert first.envelope(kind).message_id == second.envelope(kind).message_id
    assert Ids().token("wh_") != Ids().token("wh_")
    assert Ids().message_id().version == 4
