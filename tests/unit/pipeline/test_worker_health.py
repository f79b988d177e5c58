"""How a worker is, from what is known of it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from attune.kernel.ids import WorkerId
from attune.pipeline.workers.decide import health_of, is_stale
from attune.pipeline.workers.model import HealthState, Worker, WorkerStatus, WorkerType

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
