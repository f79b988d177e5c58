"""A lane, what stands in it, and what it shares with others."""

from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec

from attune.catalog.placement import Needs
from attune.kernel.ids import (
    ActionDefinitionId,
    ExecutionId,
    LaneId,
    PolicyId,
    PoolId,
    WorkerId,
)
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import EffectivePolicy, GateName, Method, Rate


class State(StrEnum):
    """`ready` and `handed` hold a slot of the lane; `handed` also one of its worker."""

    QUEUED = "queued"
    READY = "ready"
    HANDED = "handed"


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The row, locked. `terms` are the words of the policy that binds it, `max_concurrent` its live limit.

    `ageing` and `longest` are runtime settings, read with the lane: how many seconds of waiting raise an
    execution by one band, and how many may wait.
    """

    id: LaneId
    action_ref: str
    group_key: str = ""
    paused: bool = False
    next_sequence: int = 1
    queue_length: int = 0
    active_count: int = 0
    total_enqueued: int = 0
    total_completed: int = 0
    last_enqueued_at: datetime
    terms: EffectivePolicy | None = None
    stamp: str = ""
    arranged: int = 0
    max_concurrent: int | None = None
    pools: tuple[PoolId, ...] | None = None
    reason: GateName | None = None
    retry_at: datetime | None = None
    next_decision: int = 1
    ageing: float | None = None
    longest: int | None = None

    @property
    def cancels(self) -> bool:
        """Whether it turns away what its limit has no room for."""
        return self.terms is not None and self.terms.method is Method.CANCEL

    @property
    def rate(self) -> Rate | None:
        return self.terms.rate if self.terms is not None else None

    @property
    def key(self) -> tuple[str, str]:
        return self.action_ref, self.group_key

    @property
    def name(self) -> str:
        """For people: the action, and the group where there is one."""
        return f"{self.action_ref} {self.group_key}".rstrip()


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The row, locked: what lanes under one policy have together."""

    id: PoolId
    policy: PolicyId
    key: str
    active_count: int = 0
    total_accepted: int = 0
    next_decision: int = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The row. Its order in the lane is band, then sequence; among lanes it is band, then age.

    `reason` is what it began to wait for; what its lane waits for now stands in the lane. `retries` attempts have
    failed before this one, `losses` were lost before they were seen to run; `due_at` is since when a later one waits.
    """

    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int
    state: State
    reason: GateName | None
    enqueued_at: datetime
    attempt: int
    retries: int = 0
    losses: int = 0
    due_at: datetime | None = None
    definition: ActionDefinitionId
    needs: Needs | None = None
    worker: WorkerId | None = None
    lease_expires_at: datetime | None = None


class Waits(Protocol):
    """Whatever waits in a lane, as far as its turn depends on it."""

    @property
    def execution(self) -> ExecutionId: ...

    @property
    def band(self) -> Priority: ...

    @property
    def sequence(self) -> int: ...

    @property
    def enqueued_at(self) -> datetime: ...


class Waiter(msgspec.Struct, frozen=True):
    """One that waits, and no more of it than that."""

    execution: ExecutionId
    band: Priority
    sequence: int
    enqueued_at: datetime


class Pause(msgspec.Struct, frozen=True):
    """How long an execution rests between two attempts, and whether it keeps its place; `began` is when the last did."""

    until: datetime
    keeps_place: bool
    began: datetime | None


W = TypeVar("W", bound=Waits)


class Turn(msgspec.Struct, Generic[W], frozen=True):
    """One whose turn it is. `passed_over` is the oldest that waits on although it came before, `rule` says why."""

    waiter: W
    passed_over: int | None = None
    rule: str | None = None


class TurnedAway(msgspec.Struct, frozen=True):
    """An execution that a lane did not take, and how it is to end."""

    execution: ExecutionId
    status: ExecutionStatus
    text: str


class QueueTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says of queues. `deferred`: a queue outside the database proposes who is next."""

    max_queue_length: int = 10_000
    timeout_seconds: float = 3600
    deferred: bool = False
