"""Where a dead letter goes back to, and that nothing but its count of tries is changed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.bus.topology import UNROUTED, StageQueue
from attune.dead_letters.decide import ByType, ToQueue, way_back
from attune.kernel.envelope import decode, encode
from attune.kernel.errors import Conflict
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionCancel, MessageType
from tests.contract.bus.messages import STAMP, enforcement, hand_off, rule_updated

QUEUE = StageQueue.ENFORCEMENT_CREATED.value


def test_a_message_that_was_tried_is_sent_as_if_it_had_not_been() -> None:
    envelope = enforcement(1)
    tried = envelope.retried().retried()
    way = way_back(QUEUE, encode(tried))
    assert way == ToQueue(QUEUE, encode(envelope))


def test_fields_that_only_a_newer_version_knows_stay() -> None:
    fields = msgspec.json.decode(encode(enforcement(1).retried()))
    body = msgspec.json.encode({**fields, "of_tomorrow": {"big": 1e300, "text": "ü"}})
    way = way_back(QUEUE, body)
    assert isinstance(way, ToQueue)
    assert msgspec.json.decode(way.body) == {**msgspec.json.decode(body), "retry_count": 0}


def test_an_envelope_that_was_never_tried_goes_as_the_very_same_bytes() -> None:
    body = b"  " + encode(enforcement(1)) + b"\n"
    assert way_back(QUEUE, body) == ToQueue(QUEUE, body)


@given(st.binary())
def test_what_is_no_envelope_goes_as_it_came(body: bytes) -> None:
    assert way_back(QUEUE, body) == ToQueue(QUEUE, body)


@pytest.mark.parametrize("queue", [UNROUTED, f"{QUEUE}.dlq", "attune.broadcast.api.1"])
def test_what_died_in_no_queue_goes_the_way_of_its_type(queue: str) -> None:
    for envelope in (enforcement(1), rule_updated(1)):
        assert way_back(queue, encode(envelope.retried())) == ByType(envelope)


def test_an_order_that_died_in_no_queue_goes_to_the_worker_that_it_names() -> None:
    way = way_back(UNROUTED, encode(hand_off(WorkerId(7)).retried()))
    assert isinstance(way, ToQueue)
    assert way.queue == "attune.execution.worker.7"
    assert decode(way.body).retry_count == 0


def test_an_order_that_names_no_worker_is_refused() -> None:
    cancel = STAMP.envelope(
        MessageType.EXECUTION_CANCEL, ExecutionCancel(execution_id=ExecutionId(1))
    )
    with pytest.raises(Conflict, match="does not say for which"):
        way_back(UNROUTED, encode(cancel))


@given(st.binary())
def test_what_tells_nothing_of_its_place_is_refused(body: bytes) -> None:
    with pytest.raises(Conflict, match="no envelope that would tell where it belongs"):
        way_back(UNROUTED, body)
