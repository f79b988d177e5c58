"""The checker of the decision log, rule by rule."""

from datetime import timedelta

import msgspec
import pytest

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.decisions import (
    SYSTEM,
    Admitted,
    Decision,
    Handed,
    Item,
    Joined,
    Left,
    LimitChanged,
    Paused,
    Reprioritized,
    Resumed,
)
from attune.pipeline.queues.replay.lane import LaneReplay
from attune.pipeline.queues.verify import Replay
from tests.unit.pipeline.lane_histories import START, Lane, broken, proved


def of(
    *items: Item,
    number: int = 1,
    before: int = 0,
    after: int = 0,
    length: int = 0,
    limit: int | None = 1,
    lane: int = 3,
    reason: str | None = None,
) -> Decision:
    return Decision(
        lane=LaneId(lane),
        number=number,
        at=START + timedelta(seconds=number),
        active_before=before,
        active_after=after,
        queue_length=length,
        max_concurrent=limit,
        reason=reason,
        items=items,
    )


def joined(
    execution: int, sequence: int, band: int = 2, reason: str | None = "concurrency"
) -> Joined:
    return Joined(ExecutionId(execution), sequence, band, reason)


def admitted(
    execution: int, sequence: int, band: int = 2, passed: int | None = None, rule: str | None = None
) -> Admitted:
    return Admitted(ExecutionId(execution), sequence, band, passed, rule)


def left(execution: int, sequence: int, *, held: bool = True, band: int = 2) -> Left:
    return Left(ExecutionId(execution), sequence, band, held)


RUNNING = of(joined(11, 1, reason=None), after=1)
TWO_WAIT = of(
    joined(12, 2, 3), joined(13, 3, 1), number=2, before=1, after=1, length=2, reason="concurrency"
)
ENDED = left(11, 1)

FAULTS: list[tuple[str, Decision, str]] = [
    (
        "out of order",
        of(ENDED, admitted(12, 2, 3), number=3, before=1, after=1, length=1),
        "12 (sequence 2, LOW) gets a slot out of order: execution 13 (sequence 3, HIGH) waits ahead",
    ),
    (
        "a wrong one passed over",
        of(ENDED, admitted(13, 3, 1), number=3, before=1, after=1, length=1),
        "execution 13 (sequence 3, HIGH) passes over sequence 2, but is said to pass over nobody",
    ),
    (
        "passed over without a rule",
        of(ENDED, admitted(13, 3, 1, passed=2), number=3, before=1, after=1, length=1),
        "passes over sequence 2, and none of the known rules is given for it",
    ),
    (
        "above the limit",
        of(admitted(13, 3, 1, 2, "band"), number=3, before=1, after=2, length=1),
        "gets a slot above the limit of 1, with 1 held already",
    ),
    (
        "paused",
        of(Paused(), ENDED, admitted(13, 3, 1, 2, "band"), number=3, before=1, after=1, length=1),
        "gets a slot while the lane is paused",
    ),
    (
        "a stranger",
        of(ENDED, admitted(77, 9), number=3, before=1, after=1, length=2),
        "execution 77 (sequence 9, NORMAL) gets a slot but does not wait in the lane",
    ),
    (
        "another sequence",
        of(ENDED, admitted(13, 7, 1), number=3, before=1, after=1, length=1),
        "gets a slot but waits in the lane as sequence 3, HIGH",
    ),
    (
        "two slots",
        of(admitted(11, 1), number=3, before=1, after=1, length=2),
        "gets a slot although it holds one: it is in two places",
    ),
    (
        "two places",
        of(joined(12, 4), number=3, before=1, after=1, length=3),
        "execution 12 (sequence 4, NORMAL) enters a lane where it stands already",
    ),
    (
        "a sequence that falls",
        of(joined(14, 3), number=3, before=1, after=1, length=3),
        "gets a sequence that is not above 3, which was given before",
    ),
    (
        "freed twice",
        of(ENDED, ENDED, number=3, before=1, after=0, length=2),
        "execution 11 (sequence 1, NORMAL) frees a slot a second time",
    ),
    (
        "freed but never held",
        of(left(78, 9), number=3, before=1, after=0, length=2),
        "execution 78 (sequence 9, NORMAL) frees a slot but never held one",
    ),
    (
        "freed while it waits",
        of(left(12, 2, band=3), number=3, before=1, after=0, length=2),
        "frees a slot but holds none: it waits",
    ),
    (
        "a slot that stays taken",
        of(left(11, 1, held=False), number=3, before=1, after=1, length=1),
        "leaves as one that waits, but holds a slot, which stays taken",
    ),
    (
        "leaves twice",
        of(left(79, 1, held=False), number=3, before=1, after=1, length=1),
        "leaves a lane in which it does not wait",
    ),
    (
        "another band from nowhere",
        of(Reprioritized(ExecutionId(12), 2, 2, 0), number=3, before=1, after=1, length=2),
        "gets another band but stands in the lane as sequence 2, LOW",
    ),
    (
        "another band for a stranger",
        of(Reprioritized(ExecutionId(80), 9, 2, 0), number=3, before=1, after=1, length=2),
        "gets another band but is not in the lane",
    ),
    (
        "a limit that was another",
        of(LimitChanged(2, 3, "x"), number=3, before=1, after=1, length=2, limit=3),
        "the limit is said to have been 2, but was 1",
    ),
    (
        "a limit changed in silence",
        of(number=3, before=1, after=1, length=2, limit=None),
        "it says that the limit is none, not 1, and no change of it is logged",
    ),
    (
        "active before",
        of(number=3, before=0, after=0, length=2),
        "it says that 0 slots were held before it, but the log up to there leaves 1",
    ),
    (
        "queue length",
        of(number=3, before=1, after=1, length=3),
        "it says that 3 wait after it, not 2",
    ),
    (
        "a slot at once while others wait",
        of(ENDED, joined(14, 4, reason=None), number=3, before=1, after=1, length=2),
        "execution 14 (sequence 4, NORMAL) gets a slot at once, out of order: 2 wait before it",
    ),
    (
        "a gap of one",
        of(number=4, before=1, after=1, length=2),
        "decision 3 of this lane before it",
    ),
    ("a gap", of(number=6, before=1, after=1, length=2), "decisions 3 to 5 of this lane before it"),
    ("a repeated number", of(number=2, before=1, after=1, length=2), "it comes after decision 2"),
    (
        "a hand-off",
        of(Handed(ExecutionId(11), 2, LaneId(3), 1), number=3, before=1, after=1, length=2),
        "execution 11 is handed to a worker in the log of a lane",
    ),
]


@pytest.mark.parametrize(
    ("row", "words"), [each[1:] for each in FAULTS], ids=[x[0] for x in FAULTS]
)
def test_a_violation_says_where_it_stands_who_it_is_about_and_which_rule_broke(
    row: Decision, words: str
) -> None:
    violation = broken([RUNNING, TWO_WAIT, row])
    at = f"2026-01-01T00:00:0{row.number}Z"
    assert violation.text.startswith(f"Lane 3, decision {row.number} at {at}: ")
    assert words in violation.text
    assert violation.text.endswith(".")
    assert (violation.lane, violation.number, violation.at) == (3, row.number, row.at)


def test_a_violation_names_execution_and_sequence_in_fields_of_their_own() -> None:
    violation = broken(
        [RUNNING, TWO_WAIT, of(joined(14, 3), number=3, before=1, after=1, length=3)]
    )
    assert (violation.execution, violation.sequence) == (14, 3)


def test_nothing_is_counted_beyond_the_first_violation() -> None:
    gap = of(number=7)
    replay = Replay()
    found = [replay.feed(row) for row in (RUNNING, gap, of(number=99))]
    assert found[0] is None
    assert found[1] is not None
    assert found[1] is found[2]
    assert replay.proof().decisions == 2


def test_ageing_may_pass_a_higher_band_but_not_the_elders_of_its_own() -> None:
    raised = of(ENDED, admitted(12, 2, 3, None, "ageing"), number=3, before=1, after=1, length=1)
    assert proved([RUNNING, TWO_WAIT, raised]).holds
    younger = joined(14, 4, 3)
    jumps = of(
        younger, ENDED, admitted(14, 4, 3, 2, "ageing"), number=3, before=1, after=1, length=2
    )
    assert "out of order" in broken([RUNNING, TWO_WAIT, jumps]).text


def test_more_active_than_a_lowered_limit_is_no_violation_but_admitting_then_is() -> None:
    full = of(joined(1, 1, reason=None), joined(2, 2, reason=None), after=2, limit=2)
    lowered = of(LimitChanged(2, 1, "The policy changed."), number=2, before=2, after=2)
    assert proved([full, lowered]).holds
    ends = of(left(1, 1), joined(3, 3), number=3, before=2, after=1, length=1)
    assert proved([full, lowered, ends]).holds
    too_soon = of(admitted(3, 3), number=4, before=1, after=2)
    assert "above the limit of 1" in broken([full, lowered, ends, too_soon]).text


def test_from_the_middle_on_strangers_are_counted_and_the_known_are_checked() -> None:
    begins = of(joined(20, 9), number=40, before=2, after=2, length=3, limit=2)
    one_ends = of(
        left(5, 1), admitted(7, 3, 2, None), number=41, before=2, after=2, length=2, limit=2
    )
    proof = proved([begins, one_ends])
    assert proof.holds
    assert (proof.partial_lanes, proof.executions) == (1, 5)
    jumps = of(left(6, 2), admitted(20, 9), number=42, before=2, after=2, length=1, limit=2)
    assert "but older ones wait" in broken([begins, one_ends, jumps]).text
    passes = of(
        left(6, 2), admitted(20, 9, 2, 4, "band"), number=42, before=2, after=2, length=1, limit=2
    )
    assert proved([begins, one_ends, passes]).holds


def test_from_the_middle_on_nobody_can_be_a_stranger_who_joined_in_sight() -> None:
    begins = of(joined(20, 9), number=40, before=1, after=1, length=2)
    late = of(left(5, 1), admitted(77, 10), number=41, before=1, after=1, length=1)
    assert "does not wait in the lane" in broken([begins, late]).text
    freed = of(left(77, 10), number=41, before=1, after=0, length=2)
    assert "never held one" in broken([begins, freed]).text


def test_a_lane_that_begins_while_it_is_paused_admits_nobody() -> None:
    begins = of(joined(20, 9), number=40, length=1, reason="pause")
    admits = of(admitted(20, 9), number=41, after=1)
    assert "while the lane is paused" in broken([begins, admits]).text
    resumed = of(Resumed(), admitted(20, 9), number=41, after=1)
    assert proved([begins, resumed]).holds


def test_whoever_finds_a_slot_at_once_is_within_the_limit_and_nothing_is_paused() -> None:
    one_more = of(joined(12, 2, reason=None), number=2, before=1, after=2)
    assert "above the limit of 1" in broken([RUNNING, one_more]).text
    paused = of(Paused(), ENDED, joined(12, 2, reason=None), number=2, before=1, after=1)
    assert "while the lane is paused" in broken([RUNNING, paused]).text


def test_whoever_gives_up_its_slot_may_wait_on_at_its_old_place_and_at_no_other() -> None:
    back = of(ENDED, joined(11, 1), number=3, before=1, after=0, length=3)
    assert proved([RUNNING, TWO_WAIT, back]).holds
    again = of(admitted(13, 3, 1, 1, "band"), number=4, before=0, after=1, length=2)
    assert proved([RUNNING, TWO_WAIT, back, again]).holds
    elsewhere = of(ENDED, joined(11, 2), number=3, before=1, after=0, length=3)
    assert "not above 3" in broken([RUNNING, TWO_WAIT, elsewhere]).text
    gone = of(ENDED, number=3, before=1, after=0, length=2)
    too_late = of(joined(11, 1), number=4, before=0, after=0, length=3)
    assert "not above 3" in broken([RUNNING, TWO_WAIT, gone, too_late]).text


def handed(execution: int, band: int = 2) -> Handed:
    return Handed(ExecutionId(execution), band, LaneId(3), 1)


def test_hand_offs_stay_within_the_cap_of_the_system() -> None:
    within = of(handed(1), handed(2), before=1, after=3, limit=3, lane=SYSTEM)
    unrelated = of(handed(3), number=2, before=0, after=1, limit=3, lane=SYSTEM)
    assert proved([within, unrelated]).holds
    above = of(handed(1), handed(2), before=2, after=4, limit=3, lane=SYSTEM)
    assert (
        "execution 2 is handed out above the cap of 3: 4 are with workers" in broken([above]).text
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (of(handed(1), handed(1), after=2, limit=9, lane=0), "handed to two workers"),
        (
            of(handed(1), after=2, limit=9, lane=0),
            "it says that 2 are with workers after it, not 1",
        ),
        (of(joined(1, 1), limit=9, lane=0), "'joined' belongs to a lane"),
    ],
)
def test_the_log_of_the_system_is_checked_by_rows(row: Decision, words: str) -> None:
    assert words in broken([row]).text


def test_hand_offs_follow_the_bands_unless_waiting_is_worth_bands() -> None:
    items = (handed(1, 3), handed(2, 1))
    assert "out of order" in broken([of(*items, after=2, limit=9, lane=SYSTEM)]).text
    assert proved([of(*items, after=2, limit=9, lane=SYSTEM, reason="ageing")]).holds


def test_whoever_moves_is_in_one_lane_whichever_is_read_first() -> None:
    here, there = Lane(id=3, limit=0), Lane(id=9, limit=0)
    here.do(("join", 2))
    here.do(("go", 0))
    there.do(("refuse",))
    there.do(("come", 2, False))
    assert proved([*here.rows, *there.rows]).holds
    assert proved([*there.rows, *here.rows]).holds


def test_an_execution_in_two_lanes_at_once_is_found_at_the_end() -> None:
    here, there = Lane(id=3, limit=0), Lane(id=9, limit=0)
    for lane in (here, there):
        lane.do(("join", 2))
        lane.do(("refuse",))
    violation = broken([*here.rows, *there.rows])
    assert violation.text == "Execution 1 is in lane 3 and in lane 9: it is in two places."
    read_too_early = here.rows[:1]
    moved_since = [later(row, 5) for row in there.rows]
    assert proved([*read_too_early, *moved_since]).holds


def later(row: Decision, seconds: int) -> Decision:
    return msgspec.structs.replace(row, at=row.at + timedelta(seconds=seconds))


def test_what_has_left_is_forgotten() -> None:
    lane = Lane(id=3, limit=2)
    for _ in range(500):
        lane.do(("join", 4), ("join", 0), ("join", 2), ("reprioritize", 1, 1), ("end", 0))
        lane.do(("end", 0), ("end", 0))
    replay = LaneReplay(lane.rows[0])
    for row in lane.rows:
        assert replay.check(row) is None
    state = replay._state
    assert (len(replay.entered), len(state.holding), len(state.line)) == (0, 0, 0)
    assert sum(map(len, state.line._bands.values())) < 100
