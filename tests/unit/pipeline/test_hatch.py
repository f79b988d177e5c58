"""What a process hands to its own worker lies ready for it, once, and for nobody else."""

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling import hatch as module
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.scheduling.hatch import Hatch, Key

OWN, OTHER = WorkerId(1), WorkerId(2)


def hand_off(execution: int, attempt: int = 1) -> HandOff:
    return HandOff(
        execution=ExecutionId(execution),
        lane=LaneId(1),
        attempt=attempt,
        definition=ActionDefinitionId(1),
        action_ref="core.noop",
        status=ExecutionStatus.SCHEDULED,
        config={},
        env_vars=None,
        rule_ref=None,
        trigger_ref=None,
        timeout_seconds=None,
        executor=None,
        permission_set_refs=None,
    )


def key(execution: int, attempt: int = 1) -> Key:
    return ExecutionId(execution), attempt


def test_it_gives_each_once_and_only_to_the_attempt_that_it_is_of() -> None:
    hatch = Hatch()
    hatch.open(OWN)
    for number in (1, 2):
        hatch.put(OWN, hand_off(number))
    assert hatch.take([key(2), key(1, attempt=2), key(3)]) == [hand_off(2)]
    assert hatch.take([key(2)]) == []
    assert hatch.take([key(1)]) == [hand_off(1)]


def test_it_keeps_nothing_for_others_nor_while_it_is_closed() -> None:
    hatch = Hatch()
    hatch.put(OWN, hand_off(1))
    hatch.open(OWN)
    hatch.put(OTHER, hand_off(2))
    hatch.put(OWN, hand_off(3))
    hatch.close()
    hatch.put(OWN, hand_off(4))
    assert hatch.take([key(number) for number in range(1, 5)]) == []


def test_what_nobody_comes_for_is_forgotten_in_the_end() -> None:
    hatch = Hatch()
    hatch.open(OWN)
    for number in range(module._KEPT_AT_MOST + 1):
        hatch.put(OWN, hand_off(number))
    assert hatch.take([key(0), key(1)]) == [hand_off(1)]
