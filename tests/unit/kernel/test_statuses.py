"""The table of states: terminal is final, and every path ends."""

import itertools

import pytest

from attune.kernel.errors import IllegalTransition
from attune.kernel.statuses import (
    TERMINAL,
    TRANSITIONS,
    ExecutionStatus,
    Owner,
    check_transition,
    may_follow,
    owner_of,
    sources_of,
)


def test_every_status_has_its_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(ExecutionStatus)


def test_terminal_is_final_and_nothing_else_is() -> None:
    assert {status for status, targets in TRANSITIONS.items() if not targets} == TERMINAL


def test_every_status_can_be_reached_and_can_reach_an_end() -> None:
    reached = {ExecutionStatus.REQUESTED}
    while new := {t for s in reached for t in TRANSITIONS[s]} - reached:
        reached |= new
    assert reached == set(ExecutionStatus)
    ends = set(TERMINAL)
    while new := {s for s, targets in TRANSITIONS.items() if targets & ends} - ends:
        ends |= new
    assert ends == set(ExecutionStatus)


def test_the_path_of_an_ordinary_execution_is_legal() -> None:
    path = ["requested", "scheduling", "scheduled", "running", "completed"]
    for source, target in itertools.pairwise(path):
        check_transition(ExecutionStatus(source), ExecutionStatus(target))


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_nothing_follows_a_terminal_status(status: ExecutionStatus) -> None:
    for target in ExecutionStatus:
        with pytest.raises(IllegalTransition, match=f"{status} cannot become {target}"):
            check_transition(status, target)


def test_a_write_knows_where_it_may_start_from() -> None:
    for target in ExecutionStatus:
        assert sources_of(target) == {s for s in ExecutionStatus if may_follow(s, target)}
    assert sources_of(ExecutionStatus.RUNNING) == {ExecutionStatus.SCHEDULED}


def test_ownership_passes_to_the_worker_at_the_hand_off() -> None:
    assert owner_of(ExecutionStatus.REQUESTED) is Owner.EXECUTOR
    assert owner_of(ExecutionStatus.SCHEDULING) is Owner.EXECUTOR
    assert owner_of(ExecutionStatus.SCHEDULED) is Owner.WORKER
    assert owner_of(ExecutionStatus.RUNNING) is Owner.WORKER
    assert owner_of(ExecutionStatus.COMPLETED) is Owner.NOBODY
