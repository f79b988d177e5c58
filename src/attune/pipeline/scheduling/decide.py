"""Which worker gets which execution. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from attune.kernel.ids import WorkerId
from attune.pipeline.scheduling.model import (
    Assignment,
    Demand,
    Placement,
    Terms,
    Unplaceable,
    Waiting,
)
from attune.pipeline.workers.model import Worker


def place(
    waiting: Sequence[Waiting],
    workers: Sequence[Worker],
    loads: Mapping[WorkerId, int],
    terms: Terms,
    now: datetime,
) -> Placement:
    """In the order given, each to the compatible worker with the smallest share of its capacity in use."""
    load = {worker.id: loads.get(worker.id, 0) for worker in workers}
    assigned: list[Assignment] = []
    unplaceable: list[Unplaceable] = []
    for one in waiting:
        able = [worker for worker in workers if can_run(worker, one.demand)]
        free = [worker for worker in able if load[worker.id] < worker.capacity]
        if free:
            chosen = min(free, key=lambda w: (load[w.id] / w.capacity, w.id))
            load[chosen.id] += 1
            assigned.append(Assignment(one.entry, chosen.id))
        elif not able and now >= one.entry.enqueued_at + terms.no_worker_grace:
            unplaceable.append(Unplaceable(one.entry.execution, _nobody(one.demand, len(workers))))
    return Placement(assigned, unplaceable)


def can_run(worker: Worker, demand: Demand) -> bool:
    return _has_runtime(worker, demand.runtime) and all(
        worker.labels.get(label) == value for label, value in demand.selector.items()
    )


def _has_runtime(worker: Worker, runtime: str | None) -> bool:
    return runtime is None or any(each.name == runtime for each in worker.supported_runtimes)


def _nobody(demand: Demand, present: int) -> str:
    wanted = [f"runtime {demand.runtime}"] if demand.runtime else []
    wanted += [f"label {label}={value}" for label, value in sorted(demand.selector.items())]
    looked_for = f"; looked for {', '.join(wanted)}" if wanted else ""
    return f"no workers available{looked_for} ({present} active)"
