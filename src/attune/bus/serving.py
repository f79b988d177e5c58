"""From a delivery to its settlement: the one path that messages of every adapter take.

A message leaves its queue only by an acknowledgement, and that is given only after the handler
succeeded or a copy is safe elsewhere. A crash in between makes a duplicate, never a loss.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar, assert_never

import structlog

from attune.bus.dead_letters import DeadLetter, Death, read_attempts, read_dead_letter
from attune.bus.outcome import Ack, Bury, Reason, Retry, decide, describe
from attune.bus.port import DeadLetterHandler, Handler
from attune.bus.routing import Route
from attune.bus.topology import Queue, Topology, retry_exchange
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope
from attune.kernel.errors import BadMessage, BusUnavailable, Unavailable

_log = structlog.get_logger()

T = TypeVar("T")


class Delivery(Protocol):
    """One message in our hands, owed an answer. Answers after the connection was lost do nothing."""

    def envelope(self) -> Envelope:
        """The message, or `BadMessage`."""

    def body(self) -> bytes: ...

    def headers(self) -> Mapping[str, object]: ...

    def address(self) -> str:
        """The name under which the broker knows the queue it came from."""

    def ack(self) -> None: ...

    def requeue(self) -> None:
        """Put it back in its place, to be delivered again at once."""

    async def forward(
        self, route: Route, headers: dict[str, str | int], instead: Envelope | None = None
    ) -> None:
        """Return when a copy, or `instead`, is confirmed on that route."""


class Server:
    """Serves one queue's deliveries to one handler."""

    def __init__(self, queue: Queue, handler: Handler, topology: Topology, clock: Clock) -> None:
        self._queue = queue
        self._handler = handler
        self._policy = topology.retry
        self._clock = clock

    async def serve(self, delivery: Delivery) -> None:
        try:
            envelope = delivery.envelope()
        except BadMessage as error:
            await self._bury(delivery, Bury(Reason.BAD_MESSAGE, describe(error)))
            return
        failure = await _failure(self._handler, envelope)
        outcome = decide(failure, envelope.retry_count, self._policy)
        match outcome:
            case Ack():
                delivery.ack()
            case Retry():
                await self._retry(delivery, envelope, outcome)
            case Bury():
                await self._bury(delivery, outcome)
            case _:
                assert_never(outcome)

    async def _retry(self, delivery: Delivery, envelope: Envelope, retry: Retry) -> None:
        _log.info(
            "A message will be retried.",
            queue=self._queue.name,
            message_id=str(envelope.message_id),
            retry_count=envelope.retry_count,
            delay=retry.delay,
            error=retry.error,
        )
        way_back = Route(retry_exchange(retry.delay), delivery.address())
        await _move(delivery, way_back, {}, envelope.retried())

    async def _bury(self, delivery: Delivery, bury: Bury) -> None:
        _log.warning(
            "A message became a dead letter.",
            queue=self._queue.name,
            reason=bury.reason.value,
            error=bury.error,
        )
        death = Death(self._queue.name, bury.reason, bury.error, self._clock.now())
        await _move(delivery, self._queue.burial, death.headers())


class DeadLetterServer:
    """Serves one dead-letter queue. A letter has nowhere further to go, so it is retried without end."""

    def __init__(
        self, queue: Queue, handler: DeadLetterHandler, topology: Topology, clock: Clock
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._policy = topology.retry
        self._clock = clock

    async def serve(self, delivery: Delivery) -> None:
        headers = delivery.headers()
        letter = read_dead_letter(self._queue.name, headers, delivery.body(), self._clock.now())
        failure = await _failure(self._handler, letter)
        if failure is None:
            delivery.ack()
        else:
            await self._come_back(delivery, letter, failure)

    async def _come_back(self, delivery: Delivery, letter: DeadLetter, failure: Exception) -> None:
        attempts = read_attempts(delivery.headers())
        delay = self._policy.delay(attempts)
        _log.warning(
            "A dead letter could not be handled and will come back.",
            queue=self._queue.name,
            delay=delay,
            error=describe(failure),
        )
        death = Death(letter.queue, letter.reason, letter.error, letter.died_at)
        way_back = Route(retry_exchange(delay), delivery.address())
        await _move(delivery, way_back, {**letter.headers, **death.headers(attempts + 1)})


async def _failure(handler: Callable[[T], Awaitable[None]], message: T) -> Exception | None:
    """What a handler raised. A cancellation that is not ours is a failure like any other: left alone, it
    would end the runner and keep its message from everybody."""
    try:
        await handler(message)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Unavailable("The handler was cancelled by something that it waited for.")
    except Exception as failure:  # noqa: BLE001 - the edge of the loop: whatever a handler raises settles its message
        return failure
    return None


async def _move(
    delivery: Delivery, route: Route, headers: dict[str, str | int], instead: Envelope | None = None
) -> None:
    """Copy, then acknowledge; without a confirmed copy the message stays where it is.

    The copy is only given up after the publish time-out, so a requeued message cannot spin.
    """
    try:
        await delivery.forward(route, headers, instead)
    except BusUnavailable as error:
        _log.warning(
            "A message stays in its queue because its copy was not confirmed.", error=str(error)
        )
        delivery.requeue()
    else:
        delivery.ack()
