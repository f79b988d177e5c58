"""Which worker gets which execution. Pure."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final

from attune.kernel.ids import WorkerId
from attune.pipeline.scheduling.compatibility import can_run, looked_for, preference
from attune.pipeline.scheduling.model import (
    Assignment,
    Demand,
    Placement,
    Terms,
    Unplaceable,
    Waiting,
)
from attune.pipeline.workers.model import Worker

# A worker, and an action that it is set aside for.
Setback = tuple[WorkerId, str]
NONE_ASIDE: Final[frozenset[Setback]] = frozenset()


def place(
    waiting: Sequence[Waiting],
    workers: Sequence[Worker],
    loads: Mapping[WorkerId, int],
    terms: Terms,
    now: datetime,
    aside: AbstractSet[Setback] = NONE_ASIDE,
) -> Placement:
    """In the order given, each to a compatible worker with room: one that it has not failed on, that it prefers, and
    that has the smallest share of its capacity in use.

    Who is set aside for the action gets it only if everybody who can run it is.
    """
    load = {worker.id: loads.get(worker.id, 0) for worker in workers}
    assigned: list[Assignment] = []
    unplaceable: list[Unplaceable] = []
    for one in waiting:
        able = candidates(one.demand, workers, aside)
        free = [worker for worker in able if load[worker.id] < worker.capacity]
        if free:
            chosen = min(free, key=lambda w: _rank(w, one.demand, load[w.id]))
            load[chosen.id] += 1
            assigned.append(Assignment(one.entry, chosen.id))
        elif not able and now >= _waits_since(one) + terms.no_worker_grace:
            unplaceable.append(Unplaceable(one.entry.execution, _nobody(one.demand, len(workers))))
    return Placement(assigned, unplaceable)


def candidates(
    demand: Demand, workers: Sequence[Worker], aside: AbstractSet[Setback]
) -> list[Worker]:
    """Those that may get it, whether or not they have room now."""
    able = [worker for worker in workers if can_run(worker, demand)]
    if not aside:
        return able
    return [w for w in able if (w.id, demand.action_ref) not in aside] or able


def _rank(worker: Worker, demand: Demand, load: int) -> tuple[object, ...]:
    avoided = worker.id in demand.needs.avoid
    return (avoided, -preference(worker, demand), load / worker.capacity, worker.id)


def _waits_since(one: Waiting) -> datetime:
    return one.entry.due_at or one.entry.enqueued_at


def _nobody(demand: Demand, present: int) -> str:
    wanted = looked_for(demand)
    words = f"; looked for {', '.join(wanted)}" if wanted else ""
    return f"no workers available{words} ({present} active)"
