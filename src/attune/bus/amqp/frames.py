"""Messages as AMQP writes them."""

import struct
from functools import lru_cache
from typing import Final

import msgspec
from pamqp.commands import Basic
from pamqp.constants import FRAME_BODY, FRAME_END_CHAR, FRAME_HEADER, FRAME_METHOD
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from attune.bus.routing import Route
from attune.kernel.envelope import Envelope, encode
from attune.kernel.errors import InvalidInput

_PERSISTENT: Final = 2
_START: Final = struct.Struct(">BHI")
_OVERHEAD: Final = _START.size + len(FRAME_END_CHAR)


class Outgoing(msgspec.Struct, frozen=True):
    """A message that may be sent several times: on this connection, and again on the next.

    It is encoded when it is made, where its publisher can be told of a mistake; sending it cannot fail.
    """

    method: bytes
    header: bytes
    body: bytes

    def frames(self, channel: int, frame_max: int) -> bytes:
        """All of its frames in one piece."""
        size = frame_max - _OVERHEAD
        chunks = [self.body[start : start + size] for start in range(0, len(self.body), size)]
        parts = [
            _frame(FRAME_METHOD, channel, self.method),
            _frame(FRAME_HEADER, channel, self.header),
        ]
        return b"".join(parts + [_frame(FRAME_BODY, channel, chunk) for chunk in chunks])


def from_envelope(envelope: Envelope, route: Route) -> Outgoing:
    properties = Basic.Properties(
        content_type="application/json",
        delivery_mode=_PERSISTENT,
        message_id=str(envelope.message_id),
        timestamp=envelope.timestamp,
        message_type=envelope.message_type.value,
    )
    return _outgoing(route, properties, encode(envelope))


def copied(
    original: Basic.Properties, body: bytes, route: Route, headers: dict[str, str | int]
) -> Outgoing:
    """The same bytes under other headers; the broker's own tale of former deaths is left behind."""
    properties = Basic.Properties(
        content_type=original.content_type,
        content_encoding=original.content_encoding,
        headers=dict(headers),
        delivery_mode=_PERSISTENT,
        message_id=original.message_id,
        timestamp=original.timestamp,
        message_type=original.message_type,
    )
    return _outgoing(route, properties, body)


def _outgoing(route: Route, properties: Basic.Properties, body: bytes) -> Outgoing:
    try:
        header = _payload(ContentHeader(body_size=len(body), properties=properties))
        return Outgoing(_method(route), header, body)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"A message cannot be sent to {route.routing_key!r}: {error}") from error


@lru_cache(maxsize=4096)
def _method(route: Route) -> bytes:
    return _payload(Basic.Publish(exchange=route.exchange, routing_key=route.routing_key))


def _payload(frame: Basic.Publish | ContentHeader) -> bytes:
    return marshal(frame, 0)[_START.size : -len(FRAME_END_CHAR)]


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _START.pack(kind, channel, len(payload)) + payload + FRAME_END_CHAR
