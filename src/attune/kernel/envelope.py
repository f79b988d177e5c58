"""The envelope around every message, and its form on the wire.

On the wire `payload` is the item itself, or `{"items": [...]}` when the message carries several. The
form is public: others publish it, so decoding trusts nothing and explains each refusal.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec

from attune.kernel.clock import Clock
from attune.kernel.errors import BadMessage
from attune.kernel.ids import Ids, MessageId
from attune.kernel.messages import PAYLOADS, MessageType, Payload

VERSION: Final = 1
_ITEMS_AT_MOST: Final = 500


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    message_id: MessageId
    message_type: MessageType
    source: str
    timestamp: datetime
    items: tuple[Payload, ...]
    version: int = VERSION
    correlation_id: UUID | None = None
    trace_id: str | None = None
    retry_count: int = 0

    def retried(self) -> "Envelope":
        """The same message, delivered once more than before."""
        return msgspec.structs.replace(self, retry_count=self.retry_count + 1)


class Stamp:
    """Makes envelopes for one process: who sends, at what time, under which id."""

    def __init__(self, source: str, clock: Clock, ids: Ids) -> None:
        self.source = source
        self._clock = clock
        self._ids = ids

    def envelope(
        self,
        message_type: MessageType,
        *items: Payload,
        correlation_id: UUID | None = None,
        trace_id: str | None = None,
    ) -> Envelope:
        return Envelope(
            message_id=self._ids.message_id(),
            message_type=message_type,
            source=self.source,
            timestamp=self._clock.now(),
            items=items,
            correlation_id=correlation_id,
            trace_id=trace_id,
        )

    def envelopes(self, message_type: MessageType, items: Sequence[Payload]) -> list[Envelope]:
        """As few as will do."""
        return [
            self.envelope(message_type, *items[start : start + _ITEMS_AT_MOST])
            for start in range(0, len(items), _ITEMS_AT_MOST)
        ]


class _Many(msgspec.Struct):
    items: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET


class _Wire(msgspec.Struct, kw_only=True):
    """What arrives: types and version are checked by hand, because each refusal needs its own words."""

    message_id: UUID
    message_type: str
    source: str
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    payload: msgspec.Raw
    version: int = VERSION
    correlation_id: UUID | None = None
    trace_id: str | None = None
    retry_count: Annotated[int, msgspec.Meta(ge=0)] = 0


_wire_decoder = msgspec.json.Decoder(_Wire)
_many_decoder = msgspec.json.Decoder(_Many)
_item_decoders = {kind: msgspec.json.Decoder(payload) for kind, payload in PAYLOADS.items()}
_encoder = msgspec.json.Encoder()


def encode(envelope: Envelope) -> bytes:
    items = envelope.items
    payload: object = items[0] if len(items) == 1 else {"items": items}
    return _encoder.encode(
        {
            "message_id": envelope.message_id,
            "message_type": envelope.message_type,
            "version": envelope.version,
            "source": envelope.source,
            "timestamp": envelope.timestamp,
            "correlation_id": envelope.correlation_id,
            "trace_id": envelope.trace_id,
            "retry_count": envelope.retry_count,
            "payload": payload,
        }
    )


def decode(body: bytes) -> Envelope:
    """Read a message, or raise `BadMessage` with the reason that its dead letter will show."""
    try:
        wire = _wire_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"not an envelope: {error}") from error
    if wire.version != VERSION:
        raise BadMessage(f"unknown envelope version {wire.version}, this is {VERSION}")
    try:
        message_type = MessageType(wire.message_type)
    except ValueError as error:
        raise BadMessage(f"unknown message type {wire.message_type!r}") from error
    return Envelope(
        message_id=MessageId(wire.message_id),
        message_type=message_type,
        version=wire.version,
        source=wire.source,
        timestamp=wire.timestamp,
        correlation_id=wire.correlation_id,
        trace_id=wire.trace_id,
        retry_count=wire.retry_count,
        items=_decode_items(message_type, wire.payload),
    )


def _decode_items(message_type: MessageType, payload: msgspec.Raw) -> tuple[Payload, ...]:
    decoder = _item_decoders[message_type]
    try:
        many = _many_decoder.decode(payload)
        if many.items is msgspec.UNSET:
            return (decoder.decode(payload),)
        return tuple(decoder.decode(item) for item in many.items)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"the payload is not that of {message_type}: {error}") from error
