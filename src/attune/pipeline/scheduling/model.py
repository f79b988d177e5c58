"""What scheduling is told, and what it decides."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from attune.catalog.placement import Needs
from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.queues.model import Entry, QueueTerms


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """`lease` is how long a worker may take to begin what it was handed; `stale` is the silence after which
    it counts as lost; `no_worker_grace` is how long an execution waits for any worker at all to come.

    After `failure_threshold` failures of an action in a row, where others succeed, a worker is set aside for that
    action for as long as `set_aside` says.

    Who `waits` may take as long as another transaction holds a worker; who has people waiting leaves it to an executor.
    """

    lease: timedelta = timedelta(seconds=300)
    stale: timedelta = timedelta(seconds=30)
    no_worker_grace: timedelta = timedelta(0)
    failure_threshold: int = 5
    set_aside: timedelta = timedelta(seconds=300)
    waits: bool = True
    queue: QueueTerms = QueueTerms()


class Demand(msgspec.Struct, frozen=True):
    """What an execution needs of a worker: a runtime in a fitting version, others beside it, and what it asks itself.

    `runtime` and those of `required` have the names that workers use, `version` and the values are constraints.
    """

    runtime: str | None
    version: str | None = None
    required: Mapping[str, str] = {}
    needs: Needs = Needs()
    action_ref: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """A ready entry with its demand."""

    entry: Entry
    demand: Demand


class Assignment(msgspec.Struct, frozen=True):
    entry: Entry
    worker: WorkerId


class Unplaceable(msgspec.Struct, frozen=True):
    """Nobody there can run it. `reason` is what its result will say."""

    execution: ExecutionId
    reason: str


class Placement(msgspec.Struct, frozen=True):
    """What became of the ready entries; those in neither of the first lists wait for a worker with room.

    `passed_over` are those that a worker with room did not get because it is set aside for them, or has failed with
    them before, where the others were not asked.
    """

    assigned: list[Assignment]
    unplaceable: list[Unplaceable]
    passed_over: list[ExecutionId] = []
