"""aiormq's channel without its cost for each message.

The driver makes a task of every delivery, which it also cancels when the channel closes, keeps a guarded future for every
publish, and hands what it writes to a task of its own. We need none of it: a delivery goes to a plain callback (a handler
must outlive its connection), a confirmation to one counter, and frames to the connection's stream, at once.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiormq.abc import ConfirmationFrameType, DeliveredMessage
from aiormq.channel import Channel
from aiormq.connection import Connection, TransportFactory
from aiormq.exceptions import InvalidFrameError
from pamqp.commands import Basic
from pamqp.header import ContentHeader
from yarl import URL

from attune.kernel.errors import BusUnavailable

OnMessage = Callable[[DeliveredMessage], None]
OnConfirm = Callable[[int, bool, bool], None]

_ENOUGH: Final = 65536  # bytes, where the transport's own writers begin to wait


class _Keeper(TransportFactory):
    """Opens the stream as another would, and keeps it."""

    def __init__(self, factory: TransportFactory) -> None:
        self.stream: asyncio.StreamWriter | None = None
        self._factory = factory

    async def create(
        self, url: URL, **kwargs: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, self.stream = await self._factory.create(url, **kwargs)
        return reader, self.stream


class LeanConnection(Connection):
    # The broker sends a heartbeat every half interval: two whole ones without any frame are proof enough.
    HEARTBEAT_GRACE_MULTIPLIER = 2

    def __init__(self, url: URL, name: str) -> None:
        super().__init__(url, client_properties={"connection_name": name})
        self._keeper = self._transport_factory = _Keeper(self._transport_factory)

    @property
    def stream(self) -> asyncio.StreamWriter:
        if self._keeper.stream is None:
            raise BusUnavailable("The connection was not opened.")
        return self._keeper.stream


class LeanChannel(Channel):
    def __init__(
        self,
        connection: LeanConnection,
        number: int,
        on_message: OnMessage | None = None,
        on_confirm: OnConfirm | None = None,
    ) -> None:
        super().__init__(connection, number, publisher_confirms=on_confirm is not None)
        self._stream = connection.stream
        self._on_message = on_message
        self._on_confirm = on_confirm

    async def _on_deliver_frame(self, frame: Basic.Deliver) -> None:
        header = await self._get_frame()
        if not isinstance(header, ContentHeader):
            raise InvalidFrameError(f"expected a content header, got {header!r}")
        message = await self._read_content(frame, header)
        if self._on_message is not None:
            self._on_message(message)

    async def _on_confirm_frame(self, frame: ConfirmationFrameType) -> None:
        if self._on_confirm is not None and frame.delivery_tag is not None:
            multiple = bool(getattr(frame, "multiple", False))
            self._on_confirm(frame.delivery_tag, multiple, isinstance(frame, Basic.Ack))

    @property
    def takes_more(self) -> bool:
        """Whether the connection is open, and the socket has taken most of what was written.

        A stream that is closed raises whatever it is asked, before anybody else hears of its end.
        """
        stream = self._stream
        return not stream.is_closing() and stream.transport.get_write_buffer_size() <= _ENOUGH

    def write(self, frames: bytes) -> None:
        """Whole frames, beside those that the driver writes itself; only while it takes more."""
        self._stream.write(frames)

    async def drain(self) -> None:
        """Return when the socket has taken most of what was written, or raise why it never will."""
        await self._stream.drain()
        if self._stream.is_closing():
            raise BusUnavailable("The connection is closed.")


async def open_channel(
    connection: LeanConnection,
    *,
    on_message: OnMessage | None = None,
    on_confirm: OnConfirm | None = None,
) -> LeanChannel:
    """A channel of ours; with `on_confirm` it is one for publishing."""
    number = max(connection.channels, default=0) + 1
    channel = LeanChannel(connection, number, on_message, on_confirm)
    connection.channels[number] = channel
    await channel.open()
    return channel
