"""Proves from the decision log that order and limits held, or finds the first decision that broke them. Pure."""

from datetime import UTC, datetime

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.decisions import SYSTEM, Admitted, Decision, Item, Joined
from attune.pipeline.queues.replay.faults import Fault
from attune.pipeline.queues.replay.lane import LaneReplay
from attune.pipeline.queues.replay.pool import PoolReplay
from attune.pipeline.queues.replay.system import system_fault


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the whole sentence: where and when, who, and which rule was broken."""

    lane: LaneId
    number: int
    at: datetime
    execution: ExecutionId | None
    sequence: int | None
    text: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at up to the first violation, or to the end of the log.

    `partial_lanes` have a log that begins in the middle of their story; of those who were in them by then only the
    count is known. `executions` counts the places that were taken, so one that came back is there twice.
    """

    lanes: int
    partial_lanes: int
    decisions: int
    admissions: int
    executions: int
    first_at: datetime | None
    last_at: datetime | None
    violation: Violation | None

    @property
    def holds(self) -> bool:
        return self.violation is None


class Replay:
    """Takes decisions of any lanes, those of each lane by their number.

    What it keeps in mind is who waits or runs now, and a little for each lane. It stops at the first violation.
    """

    def __init__(self) -> None:
        self._lanes: dict[LaneId, LaneReplay] = {}
        self._pools: dict[LaneId, PoolReplay] = {}
        self._next: dict[LaneId, int] = {}
        self._partial = 0
        self._decisions = 0
        self._admissions = 0
        self._executions = 0
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None
        self._violation: Violation | None = None

    def feed(self, row: Decision) -> Violation | None:
        """The first violation so far; null as long as there is none."""
        if self._violation is None:
            self._count(row)
            if fault := self._missing(row) or self._broken(row):
                self._violation = _violation(row, fault)
        return self._violation

    def proof(self) -> Proof:
        """To be asked for at the end: who is in two lanes shows only then."""
        return Proof(
            lanes=len(self._lanes),
            partial_lanes=self._partial,
            decisions=self._decisions,
            admissions=self._admissions,
            executions=self._executions,
            first_at=self._first_at,
            last_at=self._last_at,
            violation=self._violation or self._in_two_lanes() or self._out_of_nowhere(),
        )

    def _count(self, row: Decision) -> None:
        self._decisions += 1
        self._admissions += sum(map(_gives_slot, row.items))
        self._executions += sum(isinstance(item, Joined) for item in row.items)
        self._first_at = min(self._first_at or row.at, row.at)
        self._last_at = max(self._last_at or row.at, row.at)

    def _missing(self, row: Decision) -> Fault | None:
        expected = self._next.get(row.lane, row.number)
        self._next[row.lane] = row.number + 1
        if row.number == expected:
            return None
        if row.number < expected:
            return Fault(f"it comes after decision {expected - 1}, so the numbers do not rise")
        missing = f"decision {expected}"
        if row.number > expected + 1:
            missing = f"decisions {expected} to {row.number - 1}"
        return Fault(f"{missing} of this lane before it is missing from the log")

    def _broken(self, row: Decision) -> Fault | None:
        if row.lane == SYSTEM:
            return system_fault(row)
        if row.lane < SYSTEM:
            return self._pools.setdefault(row.lane, PoolReplay(row)).check(row)
        if row.lane not in self._lanes:
            self._begin(row)
        return self._lanes[row.lane].check(row)

    def _begin(self, row: Decision) -> None:
        lane = self._lanes[row.lane] = LaneReplay(row)
        self._executions += lane.unseen
        self._partial += row.number > 1 or lane.unseen > 0

    def _in_two_lanes(self) -> Violation | None:
        """An execution that is in two lanes at a time up to which both were read.

        A log that was read earlier may not tell yet that it left, so only what surely overlaps counts.
        """
        found: dict[ExecutionId, LaneId] = {}
        for id_, lane in self._lanes.items():
            for execution, since in lane.entered.items():
                other = self._lanes[found.setdefault(execution, id_)]
                latest = max(since, other.entered[execution])
                if other is not lane and latest < min(lane.last_at, other.last_at):
                    return self._doubled(execution, found[execution], id_)
        return None

    def _out_of_nowhere(self) -> Violation | None:
        """An execution that came back from a lane which, up to then, it never left for a delay."""
        for id_, lane in self._lanes.items():
            for execution, (origin, at) in lane.strangers.items():
                other = self._lanes.get(origin)
                if other is None or other.last_at <= at or other.let_rest(execution):
                    continue
                return Violation(
                    lane=id_,
                    number=self._next[id_] - 1,
                    at=at,
                    execution=execution,
                    sequence=None,
                    text=f"Execution {execution} returns to lane {id_} from lane {origin}, where it did not rest.",
                )
        return None

    def _doubled(self, execution: ExecutionId, one: LaneId, other: LaneId) -> Violation:
        return Violation(
            lane=other,
            number=self._next[other] - 1,
            at=self._lanes[other].last_at,
            execution=execution,
            sequence=None,
            text=f"Execution {execution} is in lane {one} and in lane {other}: it is in two places.",
        )


def _gives_slot(item: Item) -> bool:
    """Whoever finds a slot at once joins without a reason to wait."""
    return isinstance(item, Admitted) or (isinstance(item, Joined) and item.reason is None)


def _violation(row: Decision, fault: Fault) -> Violation:
    at = row.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Violation(
        lane=row.lane,
        number=row.number,
        at=row.at,
        execution=fault.execution,
        sequence=fault.sequence,
        text=f"Lane {row.lane}, decision {row.number} at {at}: {fault.text}.",
    )
