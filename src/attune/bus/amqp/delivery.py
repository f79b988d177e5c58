"""A message from RabbitMQ, and how it is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import assert_never

from aiormq.abc import DeliveredMessage
from aiormq.exceptions import AMQPError, ChannelInvalidStateError
from pamqp.commands import Basic

from attune.bus.amqp.acks import AckWindow, Answer, AnswerFrame
from attune.bus.amqp.channel import LeanChannel
from attune.bus.amqp.frames import Outgoing, copied, from_envelope
from attune.bus.routing import Route
from attune.kernel.envelope import Envelope, decode
from attune.kernel.errors import BusUnavailable

Send = Callable[[list[Outgoing]], Awaitable[None]]


class Answers:
    """Acknowledges for one channel what its handlers finish in one turn of the loop, all together."""

    def __init__(self, channel: LeanChannel, queue: str) -> None:
        self.queue = queue
        self._channel = channel
        self._window = AckWindow()
        self._sending: asyncio.Task[None] | None = None

    @property
    def lost(self) -> bool:
        return self._channel.is_closed

    def deliver(self, tag: int) -> None:
        self._window.deliver(tag)

    def ack(self, tag: int) -> None:
        self._window.settle(tag)
        self._wake()

    def requeue(self, tag: int) -> None:
        self._window.give_back(tag)
        self._wake()

    async def flush(self, within: float) -> None:
        """Return when everything finished so far has been answered, or the connection has been too slow."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=within)

    def drop(self) -> None:
        """The channel is gone: the broker delivers what was not answered again."""
        if self._sending is not None:
            self._sending.cancel()

    def _wake(self) -> None:
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._window.pending:
                for frame in self._window.take():
                    await self._send_one(frame)
        except (AMQPError, ChannelInvalidStateError):
            pass  # the channel is gone, see `drop`
        finally:
            self._sending = None

    async def _send_one(self, frame: AnswerFrame) -> None:
        channel = self._channel
        match frame.answer:
            case Answer.ACK:
                await channel.basic_ack(frame.tag, multiple=frame.multiple, wait=False)
            case Answer.REQUEUE:
                await channel.basic_nack(frame.tag, requeue=True, wait=False)
            case _:
                assert_never(frame.answer)


class AmqpDelivery:
    __slots__ = ("_answers", "_message", "_send", "_tag")

    def __init__(self, message: DeliveredMessage, tag: int, answers: Answers, send: Send) -> None:
        self._message = message
        self._tag = tag
        self._answers = answers
        self._send = send

    def envelope(self) -> Envelope:
        return decode(self._message.body)

    def body(self) -> bytes:
        return self._message.body

    def headers(self) -> Mapping[str, object]:
        return self._message.header.properties.headers or {}

    def address(self) -> str:
        return self._answers.queue

    def ack(self) -> None:
        self._answers.ack(self._tag)

    def requeue(self) -> None:
        self._answers.requeue(self._tag)

    async def forward(
        self, route: Route, headers: dict[str, str | int], instead: Envelope | None = None
    ) -> None:
        if self._answers.lost:
            raise BusUnavailable("The connection was lost; the message will be delivered again.")
        await self._send([self._copy(route, headers, instead)])

    def _copy(
        self, route: Route, headers: dict[str, str | int], instead: Envelope | None
    ) -> Outgoing:
        if instead is not None:
            return from_envelope(instead, route)
        properties: Basic.Properties = self._message.header.properties
        return copied(properties, self._message.body, route, headers)
