"""How a worker is, from what is known of it; when it is asked, and who may judge its silence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from attune.kernel.ids import WorkerId
from attune.kernel.settings import WorkerType
from attune.pipeline.processors.worker_health import Watch
from attune.pipeline.workers.decide import health_of, is_stale, probing
from attune.pipeline.workers.model import Asked, HealthState, Worker, WorkerStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WORKER = Worker(
    id=WorkerId(1),
    name="w",
    worker_type=WorkerType.LOCAL,
    host=None,
    port=None,
    status=WorkerStatus.ACTIVE,
    capacity=1,
    supported_runtimes=[],
    labels={},
    taints=[],
    incarnation="i",
    last_heartbeat=NOW,
    created=NOW,
    updated=NOW,
)


@pytest.mark.parametrize(
    ("status", "cordoned", "stale", "busy", "state"),
    [
        ("active", False, False, False, "active"),
        ("active", False, False, True, "busy"),
        ("busy", False, False, False, "busy"),
        ("active", False, True, True, "offline"),
        ("inactive", False, False, False, "offline"),
        ("error", False, False, True, "error"),
        ("error", False, True, False, "offline"),
        ("inactive", True, True, True, "cordoned"),
    ],
)
def test_a_cordon_goes_before_silence_and_silence_before_load(
    status: str, cordoned: bool, stale: bool, busy: bool, state: str
) -> None:
    worker = msgspec.structs.replace(WORKER, status=WorkerStatus(status), cordoned=cordoned)
    assert health_of(worker, stale=stale, busy=busy) is HealthState(state)


def test_silence_counts_from_the_last_heartbeat() -> None:
    silence = timedelta(seconds=30)
    assert not is_stale(WORKER, silence, NOW + timedelta(seconds=29))
    assert is_stale(WORKER, silence, NOW + timedelta(seconds=30))


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


class TestWhoMayJudge:
    """Ten seconds of watching are needed, and a look may be two seconds late."""

    def watch(self) -> Watch:
        return Watch(needed=timedelta(seconds=10), slack=timedelta(seconds=2))

    def test_who_has_just_come_may_not(self) -> None:
        watch = self.watch()
        assert not watch.look(NOW)
        watch.rest_until(after(9))
        assert not watch.look(after(9))
        watch.rest_until(after(10))
        assert watch.look(after(10))

    def test_who_was_away_begins_anew(self) -> None:
        watch = self.watch()
        watch.look(NOW)
        watch.rest_until(after(10))
        assert watch.look(after(12))
        watch.rest_until(after(22))
        assert not watch.look(after(24.1))
        assert watch.ready_at == after(34.1)

    def test_who_slept_through_a_pass_begins_anew(self) -> None:
        watch = self.watch()
        watch.look(NOW)
        watch.rest_until(after(10))
        assert watch.look(after(10))
        assert not watch.look(after(12.5))

    def test_a_clock_that_was_set_back_is_a_break(self) -> None:
        watch = self.watch()
        watch.look(NOW)
        watch.rest_until(after(10))
        assert watch.look(after(10))
        assert not watch.look(after(5))

    def test_a_look_that_failed_is_a_break(self) -> None:
        watch = self.watch()
        watch.look(NOW)
        watch.rest_until(after(10))
        with pytest.raises(ZeroDivisionError), watch.looking(after(10)):
            raise ZeroDivisionError
        assert watch.ready_at is None
        assert not watch.look(after(11))

    def test_who_is_hurried_looks_early_and_goes_on(self) -> None:
        watch = self.watch()
        watch.look(NOW)
        watch.rest_until(after(10))
        watch.look(after(1))
        watch.rest_until(after(11))
        assert watch.look(after(11))


class TestQuestions:
    INTERVAL = timedelta(seconds=30)

    def asked(self, number: int = 1, status: str = "active", **fields: datetime | None) -> Asked:
        known = {"asked_at": None, "answered_at": None, **fields}
        return Asked(id=WorkerId(number), name="w", status=WorkerStatus(status), **known)

    @pytest.mark.parametrize(
        ("worker", "seconds", "asks", "gives_up"),
        [
            ({}, 0, True, False),
            ({"answered_at": NOW}, 29, False, False),
            ({"answered_at": NOW}, 30, True, False),
            ({"asked_at": NOW}, 59, False, False),
            ({"asked_at": NOW}, 60, True, True),
            ({"asked_at": NOW, "status": "error"}, 29, False, False),
            ({"asked_at": NOW, "status": "error"}, 30, True, False),
        ],
    )
    def test_one_an_interval_and_patience_for_two(
        self, worker: dict[str, Any], seconds: float, asks: bool, gives_up: bool
    ) -> None:
        one = self.asked(**worker)
        found = probing([one], self.INTERVAL, after(seconds), judges=True)
        assert (found.ask == (one,), found.unresponsive == (one,)) == (asks, gives_up)

    def test_who_may_not_judge_asks_again(self) -> None:
        one = self.asked(asked_at=NOW)
        found = probing([one], self.INTERVAL, after(90), judges=False)
        assert (found.ask, found.unresponsive) == ((one,), ())

    def test_the_next_pass_is_due_with_the_next_question(self) -> None:
        workers = [self.asked(1, answered_at=after(-25)), self.asked(2, answered_at=after(-10))]
        assert probing(workers, self.INTERVAL, NOW, judges=True).next_at == after(5)
        assert probing([], self.INTERVAL, NOW, judges=True).next_at == after(30)
