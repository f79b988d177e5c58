"""Which worker gets which execution. Pure."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Final

import msgspec

from attune.kernel.ids import WorkerId
from attune.pipeline.scheduling.compatibility import (
    discouraged,
    lacking,
    looked_for,
    preference,
    requirements,
)
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

# The worst comes last: failed on it before, discouraging taints, less preferred, larger share, then the id; behind
# them the load that the share is of, and the capacity.
_Rank = tuple[bool, int, int, float, WorkerId, int, int]


def place(
    waiting: Sequence[Waiting],
    workers: Sequence[Worker],
    loads: Mapping[WorkerId, int],
    terms: Terms,
    now: datetime,
    aside: AbstractSet[Setback] = NONE_ASIDE,
    *,
    alone: bool = False,
) -> Placement:
    """In the order given, each to a compatible worker with room: one that it has not failed on, that does not
    discourage it, that it prefers, and that has the smallest share of its capacity in use.

    Who is set aside for the action gets it only if everybody who can run it is. With `alone` the workers are not all
    that there are, so who is set aside, or has failed with it before, leaves it to the others.
    """
    field = _Field(workers, loads, aside, alone=alone)
    placement = Placement([], [], [])
    for one in waiting:
        contest = field.contest(one.demand)
        if (chosen := contest.take()) is not None:
            placement.assigned.append(Assignment(one.entry, chosen))
        elif contest.aside:
            placement.passed_over.append(one.entry.execution)
        elif not contest.able and now >= _waits_since(one) + terms.no_worker_grace:
            placement.unplaceable.append(Unplaceable(one.entry.execution, contest.nobody))
    return placement


def candidates(
    demand: Demand, workers: Sequence[Worker], aside: AbstractSet[Setback]
) -> list[Worker]:
    """Those that may get it, whether or not they have room now."""
    wanted = requirements(demand)
    able = [worker for worker in workers if all(one.met(worker) for one in wanted)]
    return _not_aside(able, demand, aside) or able


def _not_aside(able: list[Worker], demand: Demand, aside: AbstractSet[Setback]) -> list[Worker]:
    return [w for w in able if (w.id, demand.action_ref) not in aside] if aside else able


class _Field:
    """The workers, what they have to do by now, and who competes for each demand: executions of one kind share that."""

    def __init__(
        self,
        workers: Sequence[Worker],
        loads: Mapping[WorkerId, int],
        aside: AbstractSet[Setback],
        *,
        alone: bool,
    ) -> None:
        self._workers = workers
        self._load = {worker.id: loads.get(worker.id, 0) for worker in workers}
        self._aside = aside
        self._actions = {action_ref for _, action_ref in aside}
        self._alone = alone
        self._contests: dict[bytes, _Contest] = {}
        self._met: dict[int, tuple[Demand, _Contest]] = {}

    def contest(self, demand: Demand) -> "_Contest":
        """The very same demand, as executions of one definition have, is looked up by what it is, not by what it says."""
        met = self._met.get(id(demand))
        if met is None:
            met = self._met[id(demand)] = (demand, self._found(demand))
        return met[1]

    def _found(self, demand: Demand) -> "_Contest":
        """Actions that ask for the same share one, unless somebody is set aside for the action."""
        if demand.action_ref not in self._actions:
            demand = Demand(demand.runtime, demand.version, demand.required, demand.needs)
        key = msgspec.msgpack.encode(demand)
        found = self._contests.get(key)
        if found is None:
            found = self._contests[key] = self._made(demand)
        return found

    def _made(self, demand: Demand) -> "_Contest":
        able = candidates(demand, self._workers, self._aside)
        chosen = able
        if self._alone:
            untried = [worker for worker in able if worker.id not in demand.needs.avoid]
            chosen = _not_aside(untried, demand, self._aside)
        return _Contest(demand, self._workers, chosen, self._load, aside=len(chosen) < len(able))


class _Contest:
    """Those who may get an execution with this demand, the best first.

    Loads only grow while a placement is made, so a share that is kept is never above the true one, and is put right
    when its worker comes to the top.
    """

    def __init__(
        self,
        demand: Demand,
        workers: Sequence[Worker],
        able: Sequence[Worker],
        load: dict[WorkerId, int],
        *,
        aside: bool,
    ) -> None:
        self.able = bool(able) or aside
        self.aside = aside
        self._demand = demand
        self._workers = workers
        self._load = load
        self._ranks = [_rank(one, demand, load[one.id]) for one in able if one.capacity > 0]
        heapify(self._ranks)

    def take(self) -> WorkerId | None:
        """The worker that gets the next one, if any has room."""
        while self._ranks:
            avoided, soft, liked, _, worker, told, capacity = self._ranks[0]
            load = self._load[worker]
            if load >= capacity:
                heappop(self._ranks)
            elif load != told:
                again = (avoided, soft, liked, load / capacity, worker, load, capacity)
                heapreplace(self._ranks, again)
            else:
                self._load[worker] = load + 1
                return worker
        return None

    @cached_property
    def nobody(self) -> str:
        wanted = looked_for(self._demand)
        words = f"; looked for {', '.join(wanted)}" if wanted else ""
        why = lacking(self._demand, self._workers)
        told = f"{len(self._workers)} active; {why}" if why else f"{len(self._workers)} active"
        return f"no workers available{words} ({told})"


def _rank(worker: Worker, demand: Demand, load: int) -> _Rank:
    avoided = worker.id in demand.needs.avoid
    liked = -preference(worker, demand)
    share = load / worker.capacity
    soft = discouraged(worker, demand)
    return (avoided, soft, liked, share, worker.id, load, worker.capacity)


def _waits_since(one: Waiting) -> datetime:
    return one.entry.due_at or one.entry.enqueued_at
