"""Messages to send, and handlers that remember what came."""

import asyncio
from datetime import UTC, datetime

from attune.bus.dead_letters import DeadLetter
from attune.kernel.clock import Clock, SystemClock
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.errors import Unavailable
from attune.kernel.ids import (
    ActionId,
    EnforcementId,
    EventId,
    ExecutionId,
    Ids,
    InquiryId,
    RuleId,
    WorkerId,
)
from attune.kernel.messages import (
    EnforcementCreated,
    EventCreated,
    ExecutionCompleted,
    ExecutionRequested,
    ExecutionScheduled,
    ExecutionStatusChanged,
    InquiryChanged,
    MessageType,
    Payload,
    RuleChanged,
    WorkerChanged,
    WorkerProbe,
)
from attune.kernel.statuses import ExecutionStatus

STAMP = Stamp("test", SystemClock(), Ids())
IDS = Ids()


def enforcement(number: int) -> Envelope:
    item = EnforcementCreated(enforcement_id=EnforcementId(number))
    return STAMP.envelope(MessageType.ENFORCEMENT_CREATED, item)


def hand_off(worker: WorkerId) -> Envelope:
    item = ExecutionScheduled(execution_id=ExecutionId(1), worker_id=worker, attempt=1)
    return STAMP.envelope(MessageType.EXECUTION_SCHEDULED, item)


def rule_updated(number: int) -> Envelope:
    return STAMP.envelope(MessageType.RULE_UPDATED, RuleChanged(rule_id=RuleId(number)))


def number_of(envelope: Envelope) -> int:
    item = envelope.items[0]
    assert isinstance(item, EnforcementCreated)
    return item.enforcement_id


WORK: dict[MessageType, Payload] = {
    MessageType.EVENT_CREATED: EventCreated(event_id=EventId(1)),
    MessageType.ENFORCEMENT_CREATED: EnforcementCreated(enforcement_id=EnforcementId(1)),
    MessageType.EXECUTION_REQUESTED: ExecutionRequested(execution_id=ExecutionId(1)),
    MessageType.EXECUTION_STATUS_CHANGED: ExecutionStatusChanged(
        execution_id=ExecutionId(1), status=ExecutionStatus.RUNNING
    ),
    MessageType.EXECUTION_COMPLETED: ExecutionCompleted(
        execution_id=ExecutionId(1),
        action_id=ActionId(1),
        action_ref="core.echo",
        status=ExecutionStatus.COMPLETED,
        completed_at=datetime(2026, 1, 1, tzinfo=UTC),
    ),
    MessageType.INQUIRY_RESPONDED: InquiryChanged(inquiry_id=InquiryId(1)),
    MessageType.WORKER_REGISTERED: WorkerChanged(worker_id=WorkerId(1)),
    MessageType.WORKER_STOPPED: WorkerChanged(worker_id=WorkerId(1)),
    MessageType.WORKER_PROBED: WorkerProbe(worker_id=WorkerId(1), probe_id=IDS.message_id()),
}


class Inbox:
    """A handler that succeeds."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []

    async def __call__(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)

    @property
    def numbers(self) -> list[int]:
        return [number_of(envelope) for envelope in self.envelopes]

    def has(self, count: int) -> bool:
        return len(self.envelopes) >= count


class Failing:
    """A handler that fails, always or the first few times, and notes when it was called."""

    def __init__(self, error: Exception, clock: Clock, times: int = 1_000) -> None:
        self._error = error
        self._clock = clock
        self._times = times
        self.calls: list[float] = []
        self.retry_counts: list[int] = []

    async def __call__(self, envelope: Envelope) -> None:
        self.calls.append(self._clock.monotonic())
        self.retry_counts.append(envelope.retry_count)
        if len(self.calls) <= self._times:
            raise self._error

    def called(self, count: int) -> bool:
        return len(self.calls) >= count


class Gate:
    """A handler that holds every message until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.running = 0
        self.most_at_once = 0
        self.finished = 0

    async def __call__(self, envelope: Envelope) -> None:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await self._open.wait()
            self.finished += 1
        finally:
            self.running -= 1

    def open(self) -> None:
        self._open.set()


class Letters:
    """A handler of dead letters, which may fail the first few times."""

    def __init__(self, failures: int = 0) -> None:
        self._failures = failures
        self.letters: list[DeadLetter] = []
        self.calls = 0

    async def __call__(self, letter: DeadLetter) -> None:
        self.calls += 1
        if self.calls <= self._failures:
            raise Unavailable("The database is away.")
        self.letters.append(letter)

    def has(self, count: int) -> bool:
        return len(self.letters) >= count
