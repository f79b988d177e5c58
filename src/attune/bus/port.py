"""The bus as its users see it.

Delivery is at least once: a duplicate must find nothing left to do. A publish that returned is on the
broker's disk; one that raised `BusUnavailable` may have arrived or not.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from attune.bus.dead_letters import DeadLetter
from attune.bus.topology import Queue
from attune.kernel.envelope import Envelope
from attune.kernel.errors import Conflict

Handler = Callable[[Envelope], Awaitable[None]]
DeadLetterHandler = Callable[[DeadLetter], Awaitable[None]]
# A message, and the queue that it is for if not its routes say so.
Post = tuple[str | None, Envelope]


class QueueMismatch(Conflict):
    """The broker has a queue or exchange of that name with other arguments; only a person can decide."""

    code = "queue_mismatch"


class Subscription(Protocol):
    async def cancel(self) -> None:
        """Take nothing more, and return when the running handlers are done. Safe to call twice."""


class Bus(Protocol):
    @property
    def connected(self) -> bool:
        """Whether the broker can be reached at this moment, with everything declared."""

    async def start(self) -> None:
        """Return once connected and declared, or raise what keeps us from it; then it may be tried again."""

    async def close(self) -> None:
        """Stop taking, let running handlers finish within a bound, leave. Safe to call twice."""

    async def publish(self, *envelopes: Envelope, to: str | None = None) -> None:
        """Return when the broker has confirmed all of them; `to` names one queue instead of the routes.

        A break is waited out for as long as the bus's publish time-out, then `BusUnavailable` is raised.
        """

    def post(self, *posts: Post) -> Awaitable[None]:
        """The same, begun before this returns: what can be sent is sent, and only its confirmation is waited for."""

    async def send_raw(self, queue: str, *bodies: bytes) -> None:
        """Put bytes into one queue as they are, in their order; return when the broker has confirmed all of them.

        `NotFound` where there is no such queue, and for one that belongs to a process alone: nobody else has its
        address. One that is deleted in the same moment makes them unrouted, not lost.
        """

    async def consume(
        self, queue: str, handler: Handler, *, prefetch: int | None = None
    ) -> Subscription:
        """Give every message of a declared queue to the handler, up to `prefetch` at once.

        Success acknowledges; see `attune.bus.outcome` for failure. Consumption goes on after any break.
        """

    async def consume_dead_letters(
        self, handler: DeadLetterHandler, *, queue: str | None = None
    ) -> Subscription:
        """Give the dead letters of one dead-letter queue, or of all, to the handler.

        A letter leaves only when the handler succeeded; until then it comes back, ever more slowly.
        """

    async def declare(self, queue: Queue) -> None:
        """Make a queue beyond the standard topology, and make it again after every reconnect."""

    async def delete(self, queue: str) -> None:
        """Remove a queue and what it holds; one that does not exist is fine."""

    async def depth(self, queue: str) -> int:
        """How many messages wait in a queue, those with a handler not counted; `NotFound` without it."""
