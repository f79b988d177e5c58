"""The exchanges and queues that a broker must have, as plain values.

Both adapters build themselves from this description, before the first message is published: a message
is kept whether or not anybody consumes yet. Whatever no queue takes, and whatever dies without a
dead-letter queue, ends in the queue `attune.unrouted`.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from attune.bus.outcome import RetryPolicy
from attune.bus.routing import BY_NAME, EVENTS, EXECUTIONS, NOTICES, Route, route_of
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType

UNROUTED: Final = "attune.unrouted"
WORKER_QUEUES: Final = "attune.execution.worker"
WORKER_DEAD_LETTERS: Final = "attune.execution.worker.dlq"
BROADCASTS: Final = "attune.broadcast"
BROADCAST_DEAD_LETTERS: Final = "attune.broadcast.dlq"


class ExchangeKind(StrEnum):
    TOPIC = "topic"
    DIRECT = "direct"
    FANOUT = "fanout"


class Exchange(msgspec.Struct, frozen=True):
    """`unrouted_to` names the exchange that gets what no binding of this one matches."""

    name: str
    kind: ExchangeKind = ExchangeKind.TOPIC
    unrouted_to: str | None = None


class Binding(msgspec.Struct, frozen=True):
    exchange: str
    routing_key: str


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A durable queue, or an exclusive one: that belongs to one process and goes with its connection.

    It takes what the exchanges of `takes` route to it, and always what is sent to it by its own name: the way of
    orders, and the way back of what was delayed.

    A message that expires or is rejected goes to the exchange `dead_letters_to`, under `dead_letter_key`
    or else under the key it came with, and so ends in `dead_letter_queue`.
    """

    name: str
    takes: tuple[Binding, ...] = ()
    ttl_seconds: float | None = None
    dead_letters_to: str | None = None
    dead_letter_key: str | None = None
    dead_letter_queue: str | None = None
    exclusive: bool = False

    @property
    def bindings(self) -> tuple[Binding, ...]:
        return (*self.takes, Binding(BY_NAME, self.name))

    @property
    def burial(self) -> Route:
        """Where a consumer sends what it gives up; without a dead-letter queue it becomes unrouted."""
        if self.dead_letters_to is None:
            return Route(UNROUTED, self.name)
        return Route(self.dead_letters_to, self.dead_letter_key or self.name)


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    executions: str
    retry: RetryPolicy
    exchanges: tuple[Exchange, ...]
    queues: tuple[Queue, ...]

    def dead_letter_queues(self) -> tuple[Queue, ...]:
        """Every queue that somebody must read so that no dead letter goes unseen."""
        names = {queue.dead_letter_queue for queue in self.queues}
        names |= {WORKER_DEAD_LETTERS, BROADCAST_DEAD_LETTERS, UNROUTED}
        return tuple(queue for queue in self.queues if queue.name in names)


class StageQueue(StrEnum):
    """The executor's queues: one for each type of work."""

    EVENT_CREATED = "executor.event.created"
    ENFORCEMENT_CREATED = "executor.enforcement.created"
    EXECUTION_REQUESTED = "executor.execution.requested"
    EXECUTION_STATUS = "executor.execution.status"
    EXECUTION_COMPLETED = "executor.execution.completed"
    INQUIRY_RESPONDED = "executor.inquiry.responded"
    WORKER_REGISTERED = "executor.worker.registered"
    WORKER_STOPPED = "executor.worker.stopped"
    WORKER_PROBED = "executor.worker.probed"


_STAGE_TYPES: Final = {
    StageQueue.EVENT_CREATED: MessageType.EVENT_CREATED,
    StageQueue.ENFORCEMENT_CREATED: MessageType.ENFORCEMENT_CREATED,
    StageQueue.EXECUTION_REQUESTED: MessageType.EXECUTION_REQUESTED,
    StageQueue.EXECUTION_STATUS: MessageType.EXECUTION_STATUS_CHANGED,
    StageQueue.EXECUTION_COMPLETED: MessageType.EXECUTION_COMPLETED,
    StageQueue.INQUIRY_RESPONDED: MessageType.INQUIRY_RESPONDED,
    StageQueue.WORKER_REGISTERED: MessageType.WORKER_REGISTERED,
    StageQueue.WORKER_STOPPED: MessageType.WORKER_STOPPED,
    StageQueue.WORKER_PROBED: MessageType.WORKER_PROBED,
}


def standard_topology(
    *, executions: str = EXECUTIONS, message_ttl: float = 3600.0, retry: RetryPolicy | None = None
) -> Topology:
    """All that an installation shares; the queues of single workers and processes come on top."""
    retry = retry or RetryPolicy()
    stages = tuple(_stage_queue(stage, executions, message_ttl) for stage in StageQueue)
    rungs = tuple(_delay_queue(delay) for delay in retry.delays())
    return Topology(
        executions=executions,
        retry=retry,
        exchanges=(
            Exchange(UNROUTED, ExchangeKind.FANOUT),
            Exchange(EVENTS, unrouted_to=UNROUTED),
            Exchange(executions, unrouted_to=UNROUTED),
            Exchange(NOTICES),
            Exchange(BY_NAME, ExchangeKind.DIRECT, unrouted_to=UNROUTED),
            Exchange(dead_letter_exchange(executions), unrouted_to=UNROUTED),
            *(Exchange(rung.name, ExchangeKind.FANOUT) for rung in rungs),
        ),
        queues=(
            Queue(name=UNROUTED, takes=(Binding(UNROUTED, ""),)),
            *(_dead_letter_queue(stage, executions) for stage in stages),
            _worker_dead_letters(executions),
            _broadcast_dead_letters(executions),
            *stages,
            *rungs,
        ),
    )


def dead_letter_exchange(executions: str = EXECUTIONS) -> str:
    return f"{executions}.dlx"


def retry_exchange(delay: float) -> str:
    """The exchange whose messages come back, after that delay, to the queue named by their routing key."""
    return f"attune.retry.{round(delay * 1000)}"


def worker_queue_name(worker_id: WorkerId) -> str:
    return f"{WORKER_QUEUES}.{worker_id}"


def worker_queue(
    worker_id: WorkerId, *, ttl_seconds: float = 300.0, executions: str = EXECUTIONS
) -> Queue:
    """One worker's queue. Its arguments on RabbitMQ are the time to live and the exchange, no others:
    any client that declares it by the specification then agrees with us."""
    return Queue(
        name=worker_queue_name(worker_id),
        ttl_seconds=ttl_seconds,
        dead_letters_to=dead_letter_exchange(executions),
        dead_letter_queue=WORKER_DEAD_LETTERS,
    )


def broadcast_queue(
    process: str, *message_types: MessageType, executions: str = EXECUTIONS
) -> Queue:
    """What this one process wants to hear. `process` must be unique: two of a name would share the news."""
    return Queue(
        name=f"{BROADCASTS}.{process}",
        takes=_bindings(message_types, executions),
        dead_letters_to=dead_letter_exchange(executions),
        dead_letter_queue=BROADCAST_DEAD_LETTERS,
        exclusive=True,
    )


def _worker_dead_letters(executions: str) -> Queue:
    """Takes the dead letters of every worker's queue, whichever key a foreign sender gave them."""
    keys = (
        f"{WORKER_QUEUES}.#",
        MessageType.EXECUTION_SCHEDULED.value,
        MessageType.EXECUTION_CANCEL.value,
        MessageType.WORKER_PROBE.value,
    )
    exchange = dead_letter_exchange(executions)
    bindings = tuple(Binding(exchange, key) for key in keys)
    return Queue(name=WORKER_DEAD_LETTERS, takes=bindings)


def _broadcast_dead_letters(executions: str) -> Queue:
    binding = Binding(dead_letter_exchange(executions), f"{BROADCASTS}.#")
    return Queue(name=BROADCAST_DEAD_LETTERS, takes=(binding,))


def _stage_queue(stage: StageQueue, executions: str, message_ttl: float) -> Queue:
    return Queue(
        name=stage.value,
        takes=_bindings((_STAGE_TYPES[stage],), executions),
        ttl_seconds=message_ttl,
        dead_letters_to=dead_letter_exchange(executions),
        dead_letter_key=stage.value,
        dead_letter_queue=f"{stage.value}.dlq",
    )


def _dead_letter_queue(stage: Queue, executions: str) -> Queue:
    binding = Binding(dead_letter_exchange(executions), stage.name)
    return Queue(name=f"{stage.name}.dlq", takes=(binding,))


def _delay_queue(delay: float) -> Queue:
    name = retry_exchange(delay)
    return Queue(name=name, takes=(Binding(name, ""),), ttl_seconds=delay, dead_letters_to=BY_NAME)


def _bindings(message_types: Iterable[MessageType], executions: str) -> tuple[Binding, ...]:
    """From the routes that publishing uses, so that the two cannot differ."""
    routes = [route for kind in message_types if (route := route_of(kind, executions))]
    return tuple(Binding(route.exchange, route.routing_key) for route in routes)
