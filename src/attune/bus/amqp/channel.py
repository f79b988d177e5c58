"""aiormq's channel without its cost for each message.

The driver makes a task of every delivery, which it also cancels when the channel closes, and keeps a
guarded future for every publish. We need neither: a delivery goes to a plain callback (a handler must
outlive its connection), and a confirmation to one counter. Two methods are replaced and one is added.
"""

from collections.abc import Callable

from aiormq.abc import AbstractConnection, ChannelFrame, ConfirmationFrameType, DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import InvalidFrameError
from pamqp.commands import Basic
from pamqp.header import ContentHeader

OnMessage = Callable[[DeliveredMessage], None]
OnConfirm = Callable[[int, bool, bool], None]


class LeanChannel(Channel):
    def __init__(
        self,
        connection: AbstractConnection,
        number: int,
        on_message: OnMessage | None = None,
        on_confirm: OnConfirm | None = None,
    ) -> None:
        super().__init__(connection, number, publisher_confirms=on_confirm is not None)
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

    async def transmit(self, payload: bytes) -> None:
        """Hand ready-made frames to the connection; return when the socket's buffer has taken them."""
        drained = self.create_future()
        await self.write_queue.put(
            ChannelFrame(payload=payload, should_close=False, drain_future=drained)
        )
        await drained


async def open_channel(
    connection: AbstractConnection,
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
