"""Where a dead letter goes when it is replayed, and in which form."""

from typing import Final

import msgspec

from attune.bus.routing import Kind, kind_of
from attune.bus.topology import BROADCASTS, standard_topology, worker_queue_name
from attune.kernel.envelope import Envelope, decode, encode
from attune.kernel.errors import BadMessage, Conflict
from attune.kernel.ids import WorkerId
from attune.kernel.messages import ExecutionScheduled, WorkerProbe

# Whoever sends to one of these makes a dead letter.
_ENDS: Final = frozenset(queue.name for queue in standard_topology().dead_letter_queues())
_NEWS: Final = f"{BROADCASTS}."

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ToQueue(msgspec.Struct, frozen=True):
    """Into the queue of that name, as bytes."""

    queue: str
    body: bytes


class ByType(msgspec.Struct, frozen=True):
    """Along the route of its type, to all who take that."""

    envelope: Envelope


Way = ToQueue | ByType


def way_back(queue: str, body: bytes) -> Way:
    """To the queue that it died in. What died in none, or in that of one process, goes the way of its type.

    An envelope is sent as if it had never been tried, so that it gets all its tries again; other bytes as they came.
    """
    envelope = _envelope(body)
    if queue not in _ENDS and not queue.startswith(_NEWS):
        return ToQueue(queue, body if envelope is None else _untried(body, envelope))
    if envelope is None:
        raise Conflict(
            f"The message died in {queue}, to which nothing can be sent back,"
            " and its body is no envelope that would tell where it belongs.",
            queue=queue,
        )
    return _by_type(msgspec.structs.replace(envelope, retry_count=0))


def _by_type(envelope: Envelope) -> Way:
    if kind_of(envelope.message_type) is not Kind.ORDER:
        return ByType(envelope)
    worker = _worker_of(envelope)
    if worker is None:
        raise Conflict(
            f"The message is an order for one worker ({envelope.message_type})"
            " and does not say for which.",
            message_type=envelope.message_type.value,
        )
    return ToQueue(worker_queue_name(worker), encode(envelope))


def _worker_of(envelope: Envelope) -> WorkerId | None:
    named = (
        item.worker_id
        for item in envelope.items
        if isinstance(item, ExecutionScheduled | WorkerProbe)
    )
    return next(named, None)


def _envelope(body: bytes) -> Envelope | None:
    try:
        return decode(body)
    except BadMessage:
        return None


def _untried(body: bytes, envelope: Envelope) -> bytes:
    """Only the count is written anew: fields that a newer sender added stay as they are."""
    if envelope.retry_count == 0:
        return body
    return msgspec.json.encode({**_fields.decode(body), "retry_count": 0})
