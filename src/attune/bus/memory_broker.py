"""A broker in this process that behaves as RabbitMQ does where the bus can tell the difference.

Messages pass by reference. Nothing runs while nothing happens: a push delivers at once to a consumer
with room, and only messages that wait under a time to live set the one alarm.
"""

from typing import Protocol, assert_never

from attune.bus.alarm import Alarm
from attune.bus.dead_letters import X_DEATH
from attune.bus.memory_queue import MemoryQueue, Message
from attune.bus.topics import matches
from attune.bus.topology import Binding, Exchange, ExchangeKind, Queue, Topology
from attune.kernel.clock import Clock
from attune.kernel.errors import NotFound


class Client(Protocol):
    """One bus on this broker."""

    def on_connected(self) -> None:
        """Declare and consume anew: nothing of the former connection is left."""

    def on_lost(self) -> None: ...

    def on_removed(self, queue: str) -> None: ...


class MemoryBroker:
    """Several buses on one broker stand for several processes on one RabbitMQ."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.running = True
        self._alarm = Alarm(clock)
        self._exchanges: dict[str, Exchange] = {}
        self._queues: dict[str, MemoryQueue] = {}
        self._owners: dict[str, Client] = {}
        self._bindings: dict[str, dict[Binding, list[str]]] = {}
        self._routes: dict[tuple[str, str], tuple[MemoryQueue, ...]] = {}
        self._clients: list[Client] = []

    # Connections

    def connect(self, client: Client) -> None:
        self._clients.append(client)
        if self.running:
            client.on_connected()

    def disconnect(self, client: Client) -> None:
        self._clients.remove(client)
        self._lose(client)

    def stop(self) -> None:
        """As a stopped server: connections are gone, durable queues keep their messages."""
        self.running = False
        for client in self._clients:
            self._lose(client)

    def start(self) -> None:
        self.running = True
        for client in tuple(self._clients):
            client.on_connected()

    def drop_connections(self) -> None:
        """Break every connection once; the clients come back by themselves."""
        for client in tuple(self._clients):
            self._lose(client)
        for client in tuple(self._clients):
            client.on_connected()

    def _lose(self, client: Client) -> None:
        client.on_lost()
        for name in [name for name, owner in self._owners.items() if owner is client]:
            self.delete(name)

    # Topology

    def declare_all(self, topology: Topology) -> None:
        for exchange in topology.exchanges:
            if self._exchanges.setdefault(exchange.name, exchange) is exchange:
                self._routes.clear()
        for queue in topology.queues:
            self.declare(queue)

    def declare(self, queue: Queue, owner: Client | None = None) -> None:
        if queue.name in self._queues:
            return
        self._queues[queue.name] = MemoryQueue(queue, self.clock, self._alarm, self._expired)
        if owner is not None:
            self._owners[queue.name] = owner
        for binding in queue.bindings:
            self._bindings.setdefault(binding.exchange, {}).setdefault(binding, []).append(
                queue.name
            )
        self._routes.clear()

    def delete(self, name: str) -> None:
        queue = self._queues.pop(name, None)
        if queue is None:
            return
        self._owners.pop(name, None)
        for binding in queue.description.bindings:
            self._bindings[binding.exchange][binding].remove(name)
        self._routes.clear()
        queue.close()

    def remove(self, name: str) -> None:
        """Delete a queue at somebody's wish; its consumers hear of it."""
        self.delete(name)
        for client in tuple(self._clients):
            client.on_removed(name)

    def queue(self, name: str) -> MemoryQueue:
        try:
            return self._queues[name]
        except KeyError:
            raise NotFound(f"There is no queue {name} on the broker.", queue=name) from None

    # Messages

    def publish(self, exchange: str, routing_key: str, message: Message) -> None:
        queues = self._routes.get((exchange, routing_key))
        if queues is None:
            queues = self._routes[exchange, routing_key] = self._route(exchange, routing_key)
        message.routing_key = routing_key
        if len(queues) == 1:
            queues[0].push(message)
            return
        for queue in queues:
            queue.push(message.copy())

    def publish_raw(self, exchange: str, routing_key: str, body: bytes) -> None:
        """What a foreign client does: any bytes, under any key; the empty exchange names a queue."""
        message = Message(None, body, {})
        if exchange:
            self.publish(exchange, routing_key, message)
        else:
            self.queue(routing_key).push(message)

    def _route(self, exchange: str, routing_key: str) -> tuple[MemoryQueue, ...]:
        description = self._exchanges.get(exchange)
        if description is None:
            raise NotFound(f"There is no exchange {exchange} on the broker.", exchange=exchange)
        names: dict[str, None] = {}
        for binding, bound in self._bindings.get(exchange, {}).items():
            if _takes(description.kind, binding.routing_key, routing_key):
                names.update(dict.fromkeys(bound))
        if names:
            return tuple(self._queues[name] for name in names)
        if description.unrouted_to is not None:
            return self._route(description.unrouted_to, routing_key)
        return ()

    def _expired(self, queue: Queue, message: Message) -> None:
        if queue.dead_letters_to is None:
            return
        death = {"queue": queue.name, "reason": "expired", "time": self.clock.now()}
        message.headers = {**message.headers, X_DEATH: [death]}
        key = queue.dead_letter_key or message.routing_key
        self.publish(queue.dead_letters_to, key, message)


def _takes(kind: ExchangeKind, pattern: str, routing_key: str) -> bool:
    match kind:
        case ExchangeKind.TOPIC:
            return matches(pattern, routing_key)
        case ExchangeKind.DIRECT:
            return pattern == routing_key
        case ExchangeKind.FANOUT:
            return True
        case _:
            assert_never(kind)
