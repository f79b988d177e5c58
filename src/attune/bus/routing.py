"""Where a message of each type goes.

The routing key is the type's own word. Work must find a queue; a notice may go unheard, so it has an
exchange of its own that drops what nobody listens to; an order is for one worker and names its queue.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

from attune.kernel.envelope import Envelope
from attune.kernel.errors import InvalidInput
from attune.kernel.messages import MessageType

EVENTS: Final = "attune.events"
EXECUTIONS: Final = "attune.executions"
NOTICES: Final = "attune.notices"
BY_NAME: Final = "attune.queues"


class Route(msgspec.Struct, frozen=True):
    exchange: str
    routing_key: str


class Kind(StrEnum):
    """How a type travels."""

    EVENT = "event"
    WORK = "work"
    NOTICE = "notice"
    ORDER = "order"


_NOTICES: Final = ("rule.", "pack.", MessageType.EXECUTION_NEWS, MessageType.INQUIRY_CREATED)
_ORDERS: Final = frozenset(
    {MessageType.EXECUTION_SCHEDULED, MessageType.EXECUTION_CANCEL, MessageType.WORKER_PROBE}
)


def kind_of(message_type: MessageType) -> Kind:
    if message_type in _ORDERS:
        return Kind.ORDER
    if message_type.startswith(_NOTICES):
        return Kind.NOTICE
    if message_type.startswith("event."):
        return Kind.EVENT
    return Kind.WORK


def route_of(message_type: MessageType, executions: str = EXECUTIONS) -> Route | None:
    """The exchange and key of a type; None for an order, which goes to the queue that its sender names."""
    kind = kind_of(message_type)
    match kind:
        case Kind.EVENT:
            return Route(EVENTS, message_type.value)
        case Kind.WORK:
            return Route(executions, message_type.value)
        case Kind.NOTICE:
            return Route(NOTICES, message_type.value)
        case Kind.ORDER:
            return None
        case _:
            assert_never(kind)


def to_queue(queue: str) -> Route:
    """The way to one queue by its name; a queue that is gone makes the message unrouted, not lost."""
    return Route(BY_NAME, queue)


class Router:
    """Routes of one installation, looked up once for each type: publishing asks for every message."""

    def __init__(self, executions: str) -> None:
        self._routes = {kind: route_of(kind, executions) for kind in MessageType}

    def route(self, envelope: Envelope, queue: str | None) -> Route:
        if queue is not None:
            return to_queue(queue)
        route = self._routes[envelope.message_type]
        if route is None:
            raise InvalidInput(
                f"A message of type {envelope.message_type} is for one worker: name its queue.",
                message_type=envelope.message_type.value,
            )
        return route
