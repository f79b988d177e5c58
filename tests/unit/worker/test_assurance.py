"""A worker believes a hand-off without a look at its row only while nobody can have given the worker up."""

from datetime import UTC, datetime, timedelta

from attune.worker.assurance import Assurance

STALE, LEASE = 30.0, 300.0
START = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> tuple[float, datetime]:
    return seconds, START + timedelta(seconds=seconds)


def assurance() -> Assurance:
    return Assurance(STALE, LEASE, *at(0))


def test_it_holds_far_from_the_silence_that_means_loss() -> None:
    sure = assurance()
    assert sure.holds(*at(19))
    assert not sure.holds(*at(20))
    sure.beaten(*at(10), was_lost=False)
    assert sure.holds(*at(29))


def test_f19_after_a_loss_it_holds_again_when_no_lease_from_before_can_last() -> None:
    sure = assurance()
    sure.beaten(*at(10), was_lost=True)
    for second in range(20, 310, 10):
        sure.beaten(*at(second), was_lost=False)
        assert not sure.holds(*at(second))
    sure.beaten(*at(310), was_lost=False)
    assert sure.holds(*at(310))


def test_f19_a_silence_that_nobody_told_of_counts_as_a_loss() -> None:
    """Whoever judges it and whoever takes the work back are two transactions."""
    sure = assurance()
    sure.beaten(*at(21), was_lost=False)
    assert not sure.holds(*at(22))


def test_a_machine_that_was_suspended_is_not_sure() -> None:
    """Its monotonic clock stood still meanwhile."""
    sure = assurance()
    _, later = at(60)
    assert not sure.holds(1.0, later)
    sure.beaten(1.0, later, was_lost=False)
    assert not sure.holds(2.0, later + timedelta(seconds=1))


def test_a_clock_that_is_set_back_makes_nothing_surer() -> None:
    sure = assurance()
    assert not sure.holds(25.0, START - timedelta(hours=1))
