"""Which worker gets what, and what is said when none can."""

from datetime import UTC, datetime, timedelta
from typing import Any

from attune.catalog.placement import Needs
from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.kernel.settings import WorkerType
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.model import Entry, State
from attune.pipeline.scheduling.decide import place
from attune.pipeline.scheduling.model import Demand, Terms, Waiting
from attune.pipeline.workers.model import RuntimeSupport, Worker, WorkerStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def worker(number: int, capacity: int = 2, **fields: Any) -> Worker:
    return Worker(
        id=WorkerId(number),
        name=f"worker-{number}",
        worker_type=WorkerType.LOCAL,
        host=None,
        port=None,
        status=WorkerStatus.ACTIVE,
        capacity=capacity,
        supported_runtimes=fields.pop("runtimes", [RuntimeSupport("native")]),
        labels=fields.pop("labels", {}),
        taints=[],
        incarnation="x",
        last_heartbeat=NOW,
        created=NOW,
        updated=NOW,
        **fields,
    )


def waiting(number: int, runtime: str | None = "native", **selector: str) -> Waiting:
    entry = Entry(
        execution=ExecutionId(number),
        lane=LaneId(1),
        band=Priority.NORMAL,
        sequence=number,
        state=State.READY,
        reason=GateName.WORKER,
        enqueued_at=NOW,
        attempt=1,
        definition=ActionDefinitionId(1),
    )
    return Waiting(entry, Demand(runtime, needs=Needs(selector=selector)))


def placed(
    some: list[Waiting], workers: list[Worker], terms: Terms | None = None, **loads: int
) -> dict[int, int]:
    known = {WorkerId(int(name[1:])): load for name, load in loads.items()}
    placement = place(some, workers, known, terms or Terms(), NOW)
    return {one.entry.execution: one.worker for one in placement.assigned}


def test_each_goes_to_the_worker_with_the_smallest_share_of_its_capacity_in_use() -> None:
    some = [waiting(n) for n in range(1, 5)]
    workers = [worker(1, capacity=2), worker(2, capacity=4)]
    assert placed(some, workers, w1=1, w2=1) == {1: 2, 2: 1, 3: 2, 4: 2}


def test_a_full_worker_gets_nothing_and_what_is_left_waits() -> None:
    placement = place([waiting(1), waiting(2)], [worker(1, capacity=1)], {}, Terms(), NOW)
    assert [one.entry.execution for one in placement.assigned] == [1]
    assert placement.unplaceable == []


def test_a_runtime_or_a_label_that_nobody_has_is_told_with_what_was_looked_for() -> None:
    some = [waiting(1, "ruby"), waiting(2, "native", zone="moon"), waiting(3)]
    placement = place(some, [worker(1)], {}, Terms(), NOW)
    assert [one.entry.execution for one in placement.assigned] == [3]
    first, second = placement.unplaceable
    assert first.reason == "no workers available; looked for runtime ruby (1 active)"
    assert second.reason == (
        "no workers available; looked for runtime native, label zone=moon"
        " (1 active; no one has label zone=moon)"
    )


def test_a_label_is_matched_by_its_value() -> None:
    workers = [worker(1, labels={"zone": "a"}), worker(2, labels={"zone": "b"})]
    assert placed([waiting(1, zone="b")], workers) == {1: 2}


def test_within_the_grace_an_execution_waits_for_a_worker_to_come() -> None:
    patient = Terms(no_worker_grace=timedelta(seconds=10))
    assert place([waiting(1)], [], {}, patient, NOW).unplaceable == []
    later = NOW + timedelta(seconds=10)
    assert len(place([waiting(1)], [], {}, patient, later).unplaceable) == 1
