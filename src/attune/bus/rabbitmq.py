"""The bus on RabbitMQ."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pamqp.commands import Basic

from attune.bus.amqp.consumer import AmqpConsumer
from attune.bus.amqp.delivery import AmqpDelivery
from attune.bus.amqp.errors import DRIVER_ERRORS, check_cancelled, explain, parse_url
from attune.bus.amqp.frames import copied, from_envelope
from attune.bus.amqp.outbox import Outbox
from attune.bus.amqp.session import Session
from attune.bus.amqp.supervisor import Supervisor
from attune.bus.port import DeadLetterHandler, Handler, Post, QueueMismatch, Subscription
from attune.bus.routing import Router, to_queue
from attune.bus.runners import done_within
from attune.bus.serving import DeadLetterServer, Server
from attune.bus.subscriptions import Subscriptions
from attune.bus.topology import Queue, Topology
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope
from attune.kernel.errors import AttuneError, BusUnavailable, NotFound

T = TypeVar("T")

_INSISTENCE = 1.0
_LONGEST_NAME = 255  # bytes, by the protocol


class RabbitBus:
    """A client of RabbitMQ that mends itself: publishers, consumers and queues survive any break."""

    def __init__(
        self,
        url: str,
        topology: Topology,
        *,
        clock: Clock,
        jitter: random.Random,
        name: str = "attune",
        prefetch: int = 10,
        heartbeat: int = 10,
        publish_timeout: float = 30.0,
        close_timeout: float = 30.0,
        connect_timeout: float = 30.0,
    ) -> None:
        self._url = parse_url(url, heartbeat)
        self._topology = topology
        self._clock = clock
        self._router = Router(topology.executions)
        self._prefetch = prefetch
        self._publish_timeout = publish_timeout
        self._close_timeout = close_timeout
        self._connect_timeout = connect_timeout
        self._queues = {queue.name: queue for queue in topology.queues}
        self._consumers: dict[AmqpConsumer, None] = {}
        self._session: Session | None = None
        self._under_construction: Session | None = None
        self._changed = asyncio.Event()
        self._outbox = Outbox(clock, publish_timeout)
        self._trouble: AttuneError = BusUnavailable("The bus was not started.")
        self._running: asyncio.Task[None] | None = None
        self._closed = False
        self._supervisor = Supervisor(
            self._url,
            name,
            build=self._build,
            on_trouble=self._on_trouble,
            clock=clock,
            jitter=jitter,
            connect_timeout=connect_timeout,
        )

    @property
    def connected(self) -> bool:
        return self._session is not None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._supervisor.run())
        try:
            await self._connection(self._connect_timeout, patient=False)
        except AttuneError:
            await self._halt()
            raise

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(*(each.cancel(self._close_timeout) for each in tuple(self._consumers)))
        await self._halt()
        self._outbox.close("The bus is closed.")

    async def publish(self, *envelopes: Envelope, to: str | None = None) -> None:
        await self.post(*((to, envelope) for envelope in envelopes))

    def post(self, *posts: Post) -> Awaitable[None]:
        route = self._router.route
        return self._outbox.post([from_envelope(each, route(each, to)) for to, each in posts])

    async def send_raw(self, queue: str, *bodies: bytes) -> None:
        known = self._queues.get(queue, Queue(name=queue))
        if known.exclusive or not 0 < len(queue.encode()) <= _LONGEST_NAME:
            raise NotFound(f"There is no queue {queue} that others can send to.", queue=queue)
        await self._request(lambda session: session.depth(known))
        bare, route = Basic.Properties(), to_queue(queue)
        await self._outbox.send([copied(bare, body, route, {}) for body in bodies])

    async def consume(
        self, queue: str, handler: Handler, *, prefetch: int | None = None
    ) -> Subscription:
        description = self._described(queue)
        server = Server(description, handler, self._topology, self._clock)
        return await self._subscribe(description, server.serve, prefetch or self._prefetch)

    async def consume_dead_letters(
        self, handler: DeadLetterHandler, *, queue: str | None = None
    ) -> Subscription:
        queues = [self._described(queue)] if queue else self._topology.dead_letter_queues()
        servers = [DeadLetterServer(each, handler, self._topology, self._clock) for each in queues]
        pairs = zip(queues, servers, strict=True)
        return Subscriptions(
            [await self._subscribe(each, server.serve, self._prefetch) for each, server in pairs]
        )

    async def declare(self, queue: Queue) -> None:
        before = self._queues.get(queue.name)
        self._queues[queue.name] = queue
        try:
            await self._request(lambda session: session.declare(queue))
        except QueueMismatch:
            # What the broker refuses once it would refuse at every reconnect.
            self._queues.pop(queue.name)
            if before is not None:
                self._queues[queue.name] = before
            raise

    async def delete(self, queue: str) -> None:
        for consumer in [each for each in self._consumers if each.queue.name == queue]:
            await consumer.cancel()
        description = self._queues.pop(queue, Queue(name=queue))
        await self._request(lambda session: session.delete(description))

    async def depth(self, queue: str) -> int:
        description = self._queues.get(queue, Queue(name=queue))
        return await self._request(lambda session: session.depth(description))

    # The supervisor's side

    async def _build(self, session: Session) -> None:
        """Everything a session needs. Messages flow only when every queue is there to take them."""
        self._under_construction = session
        await session.declare_all(self._topology.exchanges, tuple(self._queues.values()))
        await session.publish_from(self._outbox)
        attached: set[AmqpConsumer] = set()
        # Somebody may subscribe while we attach the others.
        while waiting := [each for each in self._consumers if each not in attached]:
            for consumer in waiting:
                attached.add(consumer)
                await session.consume(consumer)
        self._session, self._under_construction = session, None
        self._changed.set()

    def _on_trouble(self, error: AttuneError) -> None:
        self._session = self._under_construction = None
        self._trouble = error
        self._outbox.trouble = error.message
        self._changed.set()

    # Inner parts

    async def _halt(self) -> None:
        """Leave the broker alone, ready for another start."""
        running, self._running = self._running, None
        while running is not None and not running.done():
            # Once may not be enough: the driver takes a cancellation that meets it for a lost connection.
            running.cancel()
            await asyncio.wait({running}, timeout=_INSISTENCE)
        self._session = self._under_construction = None

    async def _request(self, ask: Callable[[Session], Awaitable[T]]) -> T:
        """One question to the broker; a break during it is the caller's to retry."""
        session = await self._connection(self._publish_timeout)
        try:
            return await ask(session)
        except DRIVER_ERRORS as error:
            check_cancelled(error)
            raise explain(error, self._url) from error

    async def _connection(self, within: float, *, patient: bool = True) -> Session:
        """The session, when there is one. A patient caller also waits out what only a person can mend."""
        deadline = self._clock.monotonic() + within
        while self._session is None:
            if self._closed:
                raise BusUnavailable("The bus is closed.")
            if not patient and isinstance(self._trouble, QueueMismatch):
                raise self._trouble
            self._changed.clear()
            change = asyncio.create_task(self._changed.wait())
            remaining = deadline - self._clock.monotonic()
            try:
                if not await done_within(self._clock, remaining, {change}):
                    raise self._trouble
            finally:
                change.cancel()
        return self._session

    async def _subscribe(
        self, queue: Queue, serve: Callable[[AmqpDelivery], Awaitable[None]], prefetch: int
    ) -> Subscription:
        consumer = AmqpConsumer(
            queue, serve, prefetch, self._outbox.send, self._clock, self._forget
        )
        self._consumers[consumer] = None
        if self._session is not None:
            try:
                await self._session.consume(consumer)
            except DRIVER_ERRORS as error:
                # The break that caused this is on its way to the supervisor, which attaches everyone.
                check_cancelled(error)
        return consumer

    def _forget(self, consumer: AmqpConsumer) -> None:
        self._consumers.pop(consumer, None)
        session = self._session or self._under_construction
        if session is not None:
            session.release(consumer)

    def _described(self, name: str) -> Queue:
        if name not in self._queues:
            raise NotFound(f"The queue {name} is not declared on this bus.", queue=name)
        return self._queues[name]
