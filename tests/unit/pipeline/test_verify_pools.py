"""What lanes share is proved too: slots are counted from row to row, and none is given above the limit."""

from datetime import UTC, datetime

import pytest

from attune.kernel.ids import LaneId, PoolId
from attune.pipeline.queues.decisions import Counted, Decision, Paused, pool_log
from attune.pipeline.queues.verify import Replay

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(
    number: int, before: int, *items: Counted, after: int | None = None, limit: int | None = 2
) -> Decision:
    return Decision(
        lane=pool_log(PoolId(7)),
        number=number,
        at=NOW,
        active_before=before,
        active_after=before + sum(item.change for item in items) if after is None else after,
        queue_length=0,
        max_concurrent=limit,
        reason=None,
        items=items,
    )


def given(lane: int, count: int = 1) -> Counted:
    return Counted(LaneId(lane), count, admitted=True)


def freed(lane: int, count: int = 1) -> Counted:
    return Counted(LaneId(lane), -count, admitted=False)


def violation(*rows: Decision) -> str | None:
    replay = Replay()
    for each in rows:
        replay.feed(each)
    found = replay.proof().violation
    return found.text if found else None


def test_lanes_may_give_slots_up_to_what_they_share() -> None:
    rows = [row(1, 0, given(1)), row(2, 1, given(2)), row(3, 2, freed(1), given(3))]
    assert violation(*rows) is None


def test_slots_that_a_lane_brings_along_may_be_too_many_and_then_none_is_given() -> None:
    moved = Counted(LaneId(1), 5, admitted=False)
    assert violation(row(1, 0, moved), row(2, 5, freed(1))) is None
    assert "above the limit of 2" in str(violation(row(1, 0, moved), row(2, 5, freed(1), given(2))))


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row(1, 0, given(1, 3))], "lane 1 gets a slot above the limit of 2"),
        ([row(1, 0, given(1)), row(2, 0, given(1))], "0 slots of the pool were held before it"),
        ([row(1, 0, given(1), after=2)], "2 slots of the pool are held after it, not 1"),
        ([row(1, 0, freed(3))], "lane 3 frees a slot of the pool that nobody holds"),
        (
            [row(1, 0, given(1)), row(3, 1, freed(1))],
            "decision 2 of this lane before it is missing",
        ),
    ],
)
def test_the_first_row_that_breaks_a_rule_is_found(rows: list[Decision], text: str) -> None:
    assert text in str(violation(*rows))


def test_an_item_of_another_log_is_found() -> None:
    odd = Decision(
        lane=pool_log(PoolId(7)),
        number=1,
        at=NOW,
        active_before=0,
        active_after=0,
        queue_length=0,
        max_concurrent=None,
        reason=None,
        items=(Paused(),),
    )
    assert "something else than slots" in str(violation(odd))
