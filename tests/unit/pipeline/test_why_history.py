"""What the log tells of one execution's wait."""

from datetime import UTC, datetime, timedelta

from attune.kernel.ids import ExecutionId
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Item,
    Joined,
    Left,
    Refused,
    Reprioritized,
    Went,
)
from attune.pipeline.queues.story import Logged, Waited, WaitStory

ME, OTHER = ExecutionId(5), ExecutionId(6)
G = GateName


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def row(seconds: float, reason: GateName | None, *items: Item) -> Logged:
    return Logged(at(seconds), reason, items or None)


def told(*rows: Logged) -> WaitStory:
    story = WaitStory(ME)
    for each in rows:
        story.tell(each)
    return story


def test_the_reason_of_the_queue_is_its_own_until_it_is_admitted() -> None:
    story = told(
        row(0, G.CONCURRENCY, Joined(ME, 1, 2, "concurrency")),
        row(3, G.PAUSE),
        row(4, G.CONCURRENCY),
        row(9, G.CONCURRENCY, Admitted(ME, 1, 2)),
        row(12, G.PAUSE),
    )
    assert story.waits() == [
        Waited(G.CONCURRENCY, at(0), at(3)),
        Waited(G.PAUSE, at(3), at(4)),
        Waited(G.CONCURRENCY, at(4), at(9)),
        Waited(G.WORKER, at(9)),
    ]


def test_the_same_reason_twice_is_one_stretch_and_no_time_is_none() -> None:
    story = told(
        row(0, G.CONCURRENCY, Joined(ME, 1, 2, "concurrency"), Joined(OTHER, 2, 2, "concurrency")),
        row(1, G.CONCURRENCY, Left(OTHER, 2, 2, True)),
        row(2, G.WINDOW),
        row(2, G.CONCURRENCY, Reprioritized(ME, 1, 2, 0)),
        row(5, None, Admitted(ME, 1, 2)),
    )
    story.end(at(5))
    assert story.waits() == [Waited(G.CONCURRENCY, at(0), at(5))]


def test_one_that_is_admitted_as_it_comes_waits_for_a_worker_only() -> None:
    at_once = told(row(0, G.CONCURRENCY, Joined(ME, 1, 2)))
    assert at_once.waits() == [Waited(G.WORKER, at(0))]
    among_others = told(
        row(
            0,
            G.CONCURRENCY,
            Joined(ME, 1, 2, "concurrency"),
            Admitted(ME, 1, 2),
            Joined(OTHER, 2, 2),
        )
    )
    assert among_others.waits() == [Waited(G.WORKER, at(0))]


def test_a_queue_without_a_reason_is_a_turn() -> None:
    assert told(row(0, None, Joined(ME, 1, 2, "turn"))).waits() == [Waited(G.TURN, at(0))]


def test_a_move_to_another_queue_goes_on_with_the_reason_there() -> None:
    story = told(
        row(0, G.CONCURRENCY, Joined(ME, 1, 2, "concurrency")), row(4, None, Went(ME, 1, 2, False))
    )
    assert story.moved_at == at(4)
    story.tell(row(4, G.WINDOW, Came(ME, 1, 2, False)))
    assert story.waits() == [Waited(G.CONCURRENCY, at(0), at(4)), Waited(G.WINDOW, at(4))]
    held = told(row(0, None, Joined(ME, 1, 2)), row(4, None, Went(ME, 1, 2, True)))
    held.tell(row(4, None, Came(ME, 1, 2, True)))
    assert held.waits() == [Waited(G.WORKER, at(0))]


def test_whoever_leaves_or_is_refused_waits_no_longer() -> None:
    begin = row(0, G.CONCURRENCY, Joined(ME, 1, 2, "concurrency"))
    for last in (Left(ME, 1, 2, False), Refused(ME, "concurrency", "no room")):
        story = told(begin, row(3, G.CONCURRENCY, last), row(5, G.PAUSE))
        assert story.over
        assert story.waits() == [Waited(G.CONCURRENCY, at(0), at(3))]


def test_clocks_that_differ_never_make_a_wait_negative() -> None:
    story = told(
        row(5, G.CONCURRENCY, Joined(ME, 1, 2, "concurrency")), row(3, None, Admitted(ME, 1, 2))
    )
    story.end(at(4))
    assert story.waits() == []
