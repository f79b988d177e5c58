"""A subscription on RabbitMQ. It outlives connections; its channel does not."""

from collections.abc import Awaitable, Callable

from aiormq.abc import DeliveredMessage

from attune.bus.amqp.channel import LeanChannel, LeanConnection, open_channel
from attune.bus.amqp.delivery import AmqpDelivery, Answers, Send
from attune.bus.amqp.farewell import politely
from attune.bus.runners import Runners
from attune.bus.topology import Queue
from attune.kernel.clock import Clock

# Seconds that a courtesy to the broker may take when we leave; without it the broker helps itself.
_PATIENCE = 5.0


class AmqpConsumer:
    def __init__(
        self,
        queue: Queue,
        serve: Callable[[AmqpDelivery], Awaitable[None]],
        prefetch: int,
        send: Send,
        clock: Clock,
        on_cancel: Callable[["AmqpConsumer"], None],
    ) -> None:
        self.queue = queue
        self._prefetch = prefetch
        self._send = send
        self._clock = clock
        self._on_cancel = on_cancel
        self._runners = Runners(serve, prefetch)
        self._channel: LeanChannel | None = None
        self._answers: Answers | None = None
        self._tag = ""
        self._cancelled = False

    async def attach(self, connection: LeanConnection, address: str) -> LeanChannel | None:
        """Consume on a channel of its own, so that one queue's trouble or slowness stays its own.

        None when it was cancelled meanwhile: a channel without an owner would keep messages from others.
        """
        channel = await open_channel(connection, on_message=self._take)
        self._channel = channel
        self._answers = Answers(channel, address)
        await channel.basic_qos(prefetch_count=self._prefetch)
        consuming = await channel.basic_consume(address, _unused)
        self._tag = consuming.consumer_tag or ""
        if self._cancelled:
            await self._close(channel)
            return None
        return channel

    def detach(self) -> None:
        """The connection is gone: what no handler has begun will be delivered again."""
        self._runners.forget()
        if self._answers is not None:
            self._answers.drop()
        self._channel = None
        self._answers = None

    async def cancel(self, within: float | None = None) -> None:
        self._cancelled = True
        self._runners.refuse()
        self._on_cancel(self)
        channel, answers = self._channel, self._answers
        if channel is not None:
            await self._stop_deliveries(channel)
        await self._runners.stop(self._clock, within)
        if channel is not None and answers is not None:
            await answers.flush(_PATIENCE)
            await self._close(channel)
        self.detach()

    def _take(self, message: DeliveredMessage) -> None:
        tag, answers = message.delivery_tag, self._answers
        if answers is None or tag is None:
            return
        answers.deliver(tag)
        self._runners.offer(AmqpDelivery(message, tag, answers, self._send))

    async def _stop_deliveries(self, channel: LeanChannel) -> None:
        await politely(channel.basic_cancel(self._tag), _PATIENCE)

    async def _close(self, channel: LeanChannel) -> None:
        await politely(channel.close(), _PATIENCE)


async def _unused(message: DeliveredMessage) -> None:
    """The driver wants a callback for each consumer; ours is the channel's own."""
