"""What a bus of this process holds of the in-process broker: a delivery, and the consumer behind it."""

from collections.abc import Awaitable, Callable, Mapping

from attune.bus.memory_broker import MemoryBroker
from attune.bus.memory_queue import MemoryConsumer, MemoryQueue, Message
from attune.bus.routing import Route
from attune.bus.runners import Runners
from attune.bus.topology import Queue
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope

Forward = Callable[[Route, Message], Awaitable[None]]


class MemoryDelivery:
    __slots__ = ("_consumer", "_forward", "_message", "_queue")

    def __init__(
        self, consumer: MemoryConsumer, message: Message, queue: str, forward: Forward
    ) -> None:
        self._consumer = consumer
        self._message = message
        self._queue = queue
        self._forward = forward

    def envelope(self) -> Envelope:
        return self._message.read()

    def body(self) -> bytes:
        return self._message.raw()

    def headers(self) -> Mapping[str, object]:
        return self._message.headers

    def address(self) -> str:
        return self._queue

    def ack(self) -> None:
        self._consumer.settle(self._message)

    def requeue(self) -> None:
        self._consumer.requeue(self._message)

    async def forward(
        self, route: Route, headers: dict[str, str | int], instead: Envelope | None = None
    ) -> None:
        body = None if instead else self._message.body
        await self._forward(route, Message(instead or self._message.envelope, body, headers))


class MemorySubscription:
    """Outlives connections: it is attached to the queue anew after each break."""

    def __init__(
        self,
        queue: Queue,
        serve: Callable[[MemoryDelivery], Awaitable[None]],
        prefetch: int,
        forward: Forward,
        clock: Clock,
        on_cancel: Callable[["MemorySubscription"], None],
    ) -> None:
        self.queue = queue
        self._prefetch = prefetch
        self._forward = forward
        self._clock = clock
        self._on_cancel = on_cancel
        self._runners = Runners(serve, prefetch)
        self._attached: tuple[MemoryQueue, MemoryConsumer] | None = None

    def attach(self, broker: MemoryBroker) -> None:
        consumer = MemoryConsumer(self._deliver, self._prefetch)
        memory_queue = broker.queue(self.queue.name)
        self._attached = memory_queue, consumer
        memory_queue.attach(consumer)

    def detach(self) -> None:
        self._runners.forget()
        if self._attached is not None:
            memory_queue, consumer = self._attached
            self._attached = None
            memory_queue.detach(consumer)

    async def cancel(self, within: float | None = None) -> None:
        self._on_cancel(self)
        if self._attached is not None:
            memory_queue, consumer = self._attached
            memory_queue.pause(consumer)
        await self._runners.stop(self._clock, within)
        self.detach()

    def _deliver(self, consumer: MemoryConsumer, message: Message) -> None:
        self._runners.offer(MemoryDelivery(consumer, message, self.queue.name, self._forward))
