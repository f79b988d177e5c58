"""The bus inside one process."""

import asyncio
from collections.abc import Awaitable, Callable

from attune.bus.memory_broker import MemoryBroker
from attune.bus.memory_delivery import MemoryDelivery, MemorySubscription
from attune.bus.memory_queue import Message
from attune.bus.port import DeadLetterHandler, Handler, Post, Subscription
from attune.bus.routing import Route, Router, to_queue
from attune.bus.runners import done_within
from attune.bus.serving import DeadLetterServer, Server
from attune.bus.subscriptions import Subscriptions
from attune.bus.topology import Queue, Topology
from attune.kernel.envelope import Envelope
from attune.kernel.errors import BusUnavailable, NotFound


class MemoryBus:
    """A client of a `MemoryBroker`. It lives in the broker's time and loses what RabbitMQ would lose."""

    def __init__(
        self,
        broker: MemoryBroker,
        topology: Topology,
        *,
        prefetch: int = 10,
        publish_timeout: float = 30.0,
        close_timeout: float = 30.0,
    ) -> None:
        self._broker = broker
        self._topology = topology
        self._router = Router(topology.executions)
        self._prefetch = prefetch
        self._publish_timeout = publish_timeout
        self._close_timeout = close_timeout
        self._queues = {queue.name: queue for queue in topology.queues}
        self._subscriptions: dict[MemorySubscription, None] = {}
        self._connected = asyncio.Event()
        self._started = False
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._connected.is_set()

    async def start(self) -> None:
        self._started = True
        self._broker.connect(self)
        try:
            await self._until_connected()
        except BusUnavailable:
            self._started = False
            self._broker.disconnect(self)
            raise

    async def close(self) -> None:
        if self._closed or not self._started:
            self._closed = True
            return
        self._closed = True
        stops = [each.cancel(self._close_timeout) for each in tuple(self._subscriptions)]
        await asyncio.gather(*stops)
        self._broker.disconnect(self)

    async def publish(self, *envelopes: Envelope, to: str | None = None) -> None:
        await self.post(*((to, envelope) for envelope in envelopes))

    def post(self, *posts: Post) -> Awaitable[None]:
        routed = [(self._router.route(envelope, to), envelope) for to, envelope in posts]
        if not self._connected.is_set():
            return self._post_later(routed)
        self._post_now(routed)
        # A publish always suspends, as with a broker elsewhere: a loop of publishes must not starve readers.
        return asyncio.sleep(0)

    async def _post_later(self, routed: list[tuple[Route, Envelope]]) -> None:
        await self._until_connected()
        self._post_now(routed)

    def _post_now(self, routed: list[tuple[Route, Envelope]]) -> None:
        for route, envelope in routed:
            self._broker.publish(route.exchange, route.routing_key, Message(envelope, None, {}))

    async def send_raw(self, queue: str, *bodies: bytes) -> None:
        await self._until_connected()
        if self._broker.queue(queue).description.exclusive:
            raise NotFound(f"The queue {queue} belongs to one process.", queue=queue)
        route = to_queue(queue)
        for body in bodies:
            self._broker.publish(route.exchange, route.routing_key, Message(None, body, {}))
        await asyncio.sleep(0)

    async def consume(
        self, queue: str, handler: Handler, *, prefetch: int | None = None
    ) -> Subscription:
        description = self._described(queue)
        server = Server(description, handler, self._topology, self._broker.clock)
        return self._subscribe(description, server.serve, prefetch or self._prefetch)

    async def consume_dead_letters(
        self, handler: DeadLetterHandler, *, queue: str | None = None
    ) -> Subscription:
        queues = [self._described(queue)] if queue else self._topology.dead_letter_queues()
        return Subscriptions(self._read_dead_letters(each, handler) for each in queues)

    async def declare(self, queue: Queue) -> None:
        self._queues[queue.name] = queue
        if not self._connected.is_set():
            await self._until_connected()
        self._broker.declare(queue, self if queue.exclusive else None)

    async def delete(self, queue: str) -> None:
        for subscription in [each for each in self._subscriptions if each.queue.name == queue]:
            await subscription.cancel()
        self._queues.pop(queue, None)
        await self._until_connected()
        self._broker.remove(queue)

    async def depth(self, queue: str) -> int:
        await self._until_connected()
        return self._broker.queue(queue).depth

    # The broker's side

    def on_connected(self) -> None:
        self._broker.declare_all(self._topology)
        for queue in self._queues.values():
            self._broker.declare(queue, self if queue.exclusive else None)
        for subscription in self._subscriptions:
            subscription.attach(self._broker)
        self._connected.set()

    def on_lost(self) -> None:
        self._connected.clear()
        for subscription in self._subscriptions:
            subscription.detach()

    def on_removed(self, queue: str) -> None:
        """Somebody deleted a queue: whoever consumes it keeps it alive."""
        readers = [each for each in self._subscriptions if each.queue.name == queue]
        if readers:
            self._broker.declare(readers[0].queue, self if readers[0].queue.exclusive else None)
        for subscription in readers:
            subscription.attach(self._broker)

    # Inner parts

    async def _forward(self, route: Route, message: Message) -> None:
        if not self._connected.is_set():
            raise BusUnavailable("The connection was lost; the message will be delivered again.")
        self._broker.publish(route.exchange, route.routing_key, message)

    def _read_dead_letters(self, queue: Queue, handler: DeadLetterHandler) -> Subscription:
        server = DeadLetterServer(queue, handler, self._topology, self._broker.clock)
        return self._subscribe(queue, server.serve, self._prefetch)

    def _subscribe(
        self, queue: Queue, serve: Callable[[MemoryDelivery], Awaitable[None]], prefetch: int
    ) -> Subscription:
        subscription = MemorySubscription(
            queue, serve, prefetch, self._forward, self._broker.clock, self._forget
        )
        self._subscriptions[subscription] = None
        if self.connected:
            subscription.attach(self._broker)
        return subscription

    def _forget(self, subscription: MemorySubscription) -> None:
        self._subscriptions.pop(subscription, None)

    def _described(self, name: str) -> Queue:
        if name not in self._queues:
            raise NotFound(f"The queue {name} is not declared on this bus.", queue=name)
        return self._queues[name]

    async def _until_connected(self) -> None:
        if self._closed or not self._started:
            raise BusUnavailable(
                "The bus is closed." if self._closed else "The bus was not started."
            )
        if self._connected.is_set():
            return
        waiting = asyncio.create_task(self._connected.wait())
        try:
            if not await done_within(self._broker.clock, self._publish_timeout, {waiting}):
                raise BusUnavailable(
                    f"The in-process broker was away for {self._publish_timeout} seconds."
                )
        finally:
            waiting.cancel()
