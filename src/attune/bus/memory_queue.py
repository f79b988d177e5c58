"""A queue of the in-process broker: first in, first out, to consumers with room, in turn."""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from operator import attrgetter

from attune.bus.alarm import Alarm, Moment
from attune.bus.topology import Queue
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope, decode, encode

_arrival = attrgetter("arrival")


class Message:
    """An envelope by reference, or the bytes of a foreign publisher; headers as AMQP would carry them."""

    __slots__ = ("arrival", "body", "envelope", "expires_at", "headers", "routing_key")

    def __init__(
        self, envelope: Envelope | None, body: bytes | None, headers: Mapping[str, object]
    ) -> None:
        self.envelope = envelope
        self.body = body
        self.headers = headers
        self.routing_key = ""
        self.arrival = 0
        self.expires_at = 0.0

    def read(self) -> Envelope:
        """The envelope, or `BadMessage`."""
        if self.envelope is None:
            return decode(self.body or b"")
        return self.envelope

    def raw(self) -> bytes:
        if self.body is None and self.envelope is not None:
            return encode(self.envelope)
        return self.body or b""

    def copy(self) -> "Message":
        copy = Message(self.envelope, self.body, self.headers)
        copy.routing_key = self.routing_key
        return copy


class MemoryConsumer:
    """Takes up to `prefetch` messages that it has not answered yet."""

    def __init__(self, deliver: Callable[["MemoryConsumer", Message], None], prefetch: int) -> None:
        self.deliver = deliver
        self.prefetch = prefetch
        self.unacked: dict[int, Message] = {}
        self.queue: MemoryQueue | None = None

    def settle(self, message: Message) -> None:
        """Harmless when the connection has been lost since: the queue has taken the message back."""
        if self.unacked.pop(message.arrival, None) is not None and self.queue is not None:
            self.queue.dispatch()

    def requeue(self, message: Message) -> None:
        if self.unacked.pop(message.arrival, None) is not None and self.queue is not None:
            self.queue.take_back([message])


class MemoryQueue:
    def __init__(
        self,
        description: Queue,
        clock: Clock,
        alarm: Alarm,
        expired: Callable[[Queue, Message], None],
    ) -> None:
        self.description = description
        self._clock = clock
        self._alarm = alarm
        self._expired = expired
        self._ready: deque[Message] = deque()
        self._consumers: list[MemoryConsumer] = []
        self._turn = 0
        self._arrivals = count(1)
        self._expiry: Moment | None = None

    @property
    def depth(self) -> int:
        return len(self._ready)

    def push(self, message: Message) -> None:
        message.arrival = next(self._arrivals)
        ttl = self.description.ttl_seconds
        message.expires_at = 0.0 if ttl is None else self._clock.monotonic() + ttl
        self._ready.append(message)
        self.dispatch()

    def attach(self, consumer: MemoryConsumer) -> None:
        consumer.queue = self
        self._consumers.append(consumer)
        self.dispatch()

    def pause(self, consumer: MemoryConsumer) -> None:
        """Give it nothing more; what it holds it may still answer."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    def detach(self, consumer: MemoryConsumer) -> None:
        self.pause(consumer)
        held = list(consumer.unacked.values())
        consumer.unacked.clear()
        self.take_back(held)

    def take_back(self, messages: list[Message]) -> None:
        """Unanswered messages return to the front, in the order in which they had come."""
        self._ready.extendleft(sorted(messages, key=_arrival, reverse=True))
        self.dispatch()

    def close(self) -> None:
        """The queue is deleted: what it held is gone, and so are its consumers."""
        self._ready.clear()
        self._watch_expiry()
        for consumer in self._consumers:
            consumer.unacked.clear()
        self._consumers.clear()

    def dispatch(self) -> None:
        ready = self._ready
        while ready and (consumer := self._next_free()) is not None:
            message = ready.popleft()
            if message.expires_at and message.expires_at <= self._clock.monotonic():
                self._expired(self.description, message)
                continue
            consumer.unacked[message.arrival] = message
            consumer.deliver(consumer, message)
        self._watch_expiry()

    def _next_free(self) -> MemoryConsumer | None:
        consumers = self._consumers
        for offset in range(len(consumers)):
            index = (self._turn + offset) % len(consumers)
            if len(consumers[index].unacked) < consumers[index].prefetch:
                self._turn = index + 1
                return consumers[index]
        return None

    def _watch_expiry(self) -> None:
        """The alarm is set while messages wait, and only then."""
        if self.description.ttl_seconds is None:
            return
        if self._ready and self._expiry is None:
            self._expiry = self._alarm.at(self._ready[0].expires_at, self._expire)
        elif not self._ready and self._expiry is not None:
            self._alarm.call_off(self._expiry)
            self._expiry = None

    def _expire(self) -> None:
        self._expiry = None
        now = self._clock.monotonic()
        while self._ready and self._ready[0].expires_at <= now:
            self._expired(self.description, self._ready.popleft())
        self.dispatch()
