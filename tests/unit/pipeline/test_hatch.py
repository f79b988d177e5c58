"""The short way of a hand-off: in one process it lies ready, between processes it travels sealed. For its worker alone."""

import base64
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.kernel.messages import ExecutionScheduled
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling import hatch as module
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.scheduling.hatch import Hatch, Shelf
from attune.pipeline.scheduling.sealed_hatch import LARGEST, SealedHatch

OWN, OTHER = WorkerId(1), WorkerId(2)
NOW, BEFORE = "this process", "an earlier process of the same name"
SECRET = "a secret of the installation"


def hand_off(execution: int, attempt: int = 1, **config: Any) -> HandOff:
    return HandOff(
        execution=ExecutionId(execution),
        lane=LaneId(1),
        attempt=attempt,
        definition=ActionDefinitionId(1),
        action_ref="core.noop",
        status=ExecutionStatus.SCHEDULED,
        config=config,
        env_vars={"HOME": "/"},
        rule_ref=None,
        trigger_ref=None,
        timeout_seconds=1.5,
        executor=None,
        permission_set_refs=None,
        lease_expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )


def order(execution: int, attempt: int = 1, sealed: str | None = None) -> ExecutionScheduled:
    return ExecutionScheduled(
        execution_id=ExecutionId(execution), worker_id=OWN, attempt=attempt, sealed=sealed
    )


def sealing(secret: str = SECRET) -> SealedHatch:
    return SealedHatch(secret, random.Random(1))


def opened(hatch: Hatch) -> Hatch:
    hatch.open(OWN, NOW)
    return hatch


def test_a_shelf_gives_each_once_and_only_to_the_attempt_that_it_is_of() -> None:
    shelf = opened(Shelf())
    for number in (1, 2):
        assert shelf.put(OWN, NOW, hand_off(number)) is None
    assert shelf.take([order(2), order(1, attempt=2), order(3)]) == [hand_off(2)]
    assert shelf.take([order(2)]) == []
    assert shelf.take([order(1)]) == [hand_off(1)]


def test_a_shelf_keeps_nothing_for_others_nor_while_it_is_closed() -> None:
    shelf = Shelf()
    shelf.put(OWN, NOW, hand_off(1))
    shelf.open(OWN, NOW)
    shelf.put(OTHER, NOW, hand_off(2))
    shelf.put(OWN, NOW, hand_off(3))
    shelf.close()
    shelf.put(OWN, NOW, hand_off(4))
    assert shelf.take([order(number) for number in range(1, 5)]) == []


def test_what_nobody_comes_for_is_forgotten_in_the_end() -> None:
    shelf = opened(Shelf())
    for number in range(module._KEPT_AT_MOST + 1):
        shelf.put(OWN, NOW, hand_off(number))
    assert shelf.take([order(0), order(1)]) == [hand_off(1)]


def test_what_one_process_seals_the_worker_opens_in_another() -> None:
    sent = hand_off(1, colour="blue", nested={"list": [1, 2.5, None, "ü"]})
    sealed = sealing().put(OWN, NOW, sent)
    assert opened(sealing()).take([order(1, sealed=sealed)]) == [sent]


def test_f41_nothing_of_a_parameter_can_be_read_in_an_order() -> None:
    sealed = sealing().put(OWN, NOW, hand_off(1, password="hunter2"))
    assert sealed is not None
    message = msgspec.json.encode(order(1, sealed=sealed)) + base64.b64decode(sealed)
    assert b"hunter2" not in message
    assert b"password" not in message


def test_the_same_hand_off_is_never_sealed_alike_twice() -> None:
    hatch = sealing()
    assert hatch.put(OWN, NOW, hand_off(1)) != hatch.put(OWN, NOW, hand_off(1))


@pytest.mark.parametrize(
    ("worker", "incarnation", "secret"),
    [(OTHER, NOW, SECRET), (OWN, BEFORE, SECRET), (OWN, NOW, "another installation")],
    ids=["another worker's", "an earlier process's", "another installation's"],
)
def test_what_is_sealed_for_somebody_else_does_not_open(
    worker: WorkerId, incarnation: str, secret: str
) -> None:
    sealed = sealing(secret).put(worker, incarnation, hand_off(1))
    assert opened(sealing()).take([order(1, sealed=sealed)]) == []


def test_what_is_sealed_belongs_to_its_own_order() -> None:
    sealed = sealing().put(OWN, NOW, hand_off(1))
    wrong = [order(2, sealed=sealed), order(1, attempt=2, sealed=sealed), order(1)]
    assert opened(sealing()).take(wrong) == []


@pytest.mark.parametrize("place", [0, 30, -2])
def test_a_forged_seal_does_not_open(place: int) -> None:
    sealed = sealing().put(OWN, NOW, hand_off(1))
    assert sealed is not None
    content = bytearray(base64.b64decode(sealed))
    content[place] ^= 1
    forged = base64.b64encode(bytes(content)).decode()
    assert opened(sealing()).take([order(1, sealed=forged)]) == []


@pytest.mark.parametrize("text", ["", "no base64!", "AAAA", "ü"])
def test_nonsense_in_place_of_a_seal_is_no_accident(text: str) -> None:
    assert opened(sealing()).take([order(1, sealed=text)]) == []


def test_what_is_large_is_left_to_its_row() -> None:
    assert sealing().put(OWN, NOW, hand_off(1, text="x" * LARGEST)) is None


def test_a_closed_hatch_opens_nothing() -> None:
    hatch = opened(sealing())
    sealed = hatch.put(OWN, NOW, hand_off(1))
    hatch.close()
    assert hatch.take([order(1, sealed=sealed)]) == []
