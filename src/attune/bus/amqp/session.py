"""One connection's life. Everything in it dies with it, and the next one is built from nothing."""

import asyncio
from collections.abc import Iterable

from aiormq.abc import AbstractChannel
from aiormq.exceptions import ChannelNotFoundEntity
from pamqp.commands import Basic
from yarl import URL

from attune.bus.amqp.channel import LeanConnection, open_channel
from attune.bus.amqp.confirms import Confirms
from attune.bus.amqp.consumer import AmqpConsumer
from attune.bus.amqp.declare import declare_exchange, declare_queue
from attune.bus.amqp.farewell import politely
from attune.bus.amqp.outbox import Outbox
from attune.bus.topology import Exchange, Queue
from attune.kernel.errors import BusUnavailable, NotFound

# Seconds for a farewell to a broker that may be gone.
_FAREWELL = 2.0


class Session:
    """`lost` is set with the cause as soon as the connection or any lasting channel of it is gone."""

    def __init__(self, connection: LeanConnection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._confirms = Confirms()
        self._consumers: set[AmqpConsumer] = set()
        self._pump: asyncio.Task[None] | None = None
        self.lost: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._watch(connection.closing)

    @classmethod
    async def open(cls, url: URL, name: str, number: int) -> "Session":
        connection = LeanConnection(url, name)
        await connection.connect()
        return cls(connection, number)

    async def declare_all(self, exchanges: Iterable[Exchange], queues: Iterable[Queue]) -> None:
        channel = await self._passing_channel()
        for exchange in exchanges:
            await declare_exchange(channel, exchange)
        for queue in queues:
            await declare_queue(channel, queue, self._address(queue))
        await channel.close()

    async def declare(self, queue: Queue) -> None:
        channel = await self._passing_channel()
        await declare_queue(channel, queue, self._address(queue))
        await channel.close()

    async def delete(self, queue: Queue) -> None:
        channel = await self._passing_channel()
        await channel.queue_delete(self._address(queue))
        await channel.close()

    async def depth(self, queue: Queue) -> int:
        channel = await self._passing_channel()
        try:
            declared = await channel.queue_declare(self._address(queue), passive=True)
        except ChannelNotFoundEntity as error:
            text = f"There is no queue {queue.name} on the broker."
            raise NotFound(text, queue=queue.name) from error
        await channel.close()
        return declared.message_count or 0

    async def publish_from(self, outbox: Outbox) -> None:
        channel = await open_channel(self._connection, on_confirm=self._confirms.settle)
        self._watch(channel.closing)
        self._pump = asyncio.create_task(outbox.pump(channel, self._confirms))
        self._watch(self._pump)

    async def consume(self, consumer: AmqpConsumer) -> None:
        self._consumers.add(consumer)
        channel = await consumer.attach(self._connection, self._address(consumer.queue))
        if channel is None:
            self._consumers.discard(consumer)
            return
        self._watch(channel.closing, consumer)
        channel.on_consumer_cancel_callbacks.add(self._consumer_cancelled)

    def release(self, consumer: AmqpConsumer) -> None:
        """It leaves by itself: the end of its channel is no loss."""
        self._consumers.discard(consumer)

    async def close(self) -> None:
        self._lose(BusUnavailable("The bus was closed."))
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        self._confirms.retire()
        for consumer in self._consumers:
            consumer.detach()
        await politely(self._connection.close(), _FAREWELL)

    async def _passing_channel(self) -> AbstractChannel:
        """For a few requests: an error closes it, which must not count as a loss."""
        return await self._connection.channel(publisher_confirms=False)

    def _address(self, queue: Queue) -> str:
        """A broken connection may hold its exclusive queues for a while, so each has names of its own."""
        return f"{queue.name}.{self._number}" if queue.exclusive else queue.name

    def _watch(self, closing: "asyncio.Future[None]", consumer: AmqpConsumer | None = None) -> None:
        def closed(future: "asyncio.Future[None]") -> None:
            cause = None if future.cancelled() else future.exception()
            if consumer is None or consumer in self._consumers:
                self._lose(cause or BusUnavailable("The broker closed a channel."))

        closing.add_done_callback(closed)

    def _consumer_cancelled(self, frame: Basic.Cancel) -> None:
        self._lose(
            BusUnavailable(
                f"The broker ended the consumer {frame.consumer_tag}: was its queue deleted?"
            )
        )

    def _lose(self, cause: BaseException) -> None:
        if not self.lost.done():
            self.lost.set_result(cause)
