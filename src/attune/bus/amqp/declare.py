"""The topology, told to RabbitMQ."""

from aiormq.abc import AbstractChannel
from aiormq.exceptions import ChannelPreconditionFailed
from pamqp.common import FieldTable

from attune.bus.port import QueueMismatch
from attune.bus.topology import Exchange, Queue


async def declare_exchange(channel: AbstractChannel, exchange: Exchange) -> None:
    arguments: FieldTable = {}
    if exchange.unrouted_to is not None:
        arguments["alternate-exchange"] = exchange.unrouted_to
    try:
        await channel.exchange_declare(
            exchange.name, exchange_type=exchange.kind.value, durable=True, arguments=arguments
        )
    except ChannelPreconditionFailed as error:
        raise _mismatch("exchange", exchange.name, error) from error


async def declare_queue(channel: AbstractChannel, queue: Queue, address: str) -> None:
    """`address` is the queue's name on the broker, and the key under which others send to it there."""
    try:
        await channel.queue_declare(
            address,
            durable=not queue.exclusive,
            exclusive=queue.exclusive,
            auto_delete=queue.exclusive,
            arguments=queue_arguments(queue),
        )
    except ChannelPreconditionFailed as error:
        raise _mismatch("queue", queue.name, error) from error
    for binding in queue.bindings:
        key = address if binding.routing_key == queue.name else binding.routing_key
        await channel.queue_bind(address, binding.exchange, key)


def queue_arguments(queue: Queue) -> FieldTable:
    arguments: FieldTable = {}
    if queue.ttl_seconds is not None:
        arguments["x-message-ttl"] = round(queue.ttl_seconds * 1000)
    if queue.dead_letters_to is not None:
        arguments["x-dead-letter-exchange"] = queue.dead_letters_to
    if queue.dead_letter_key is not None:
        arguments["x-dead-letter-routing-key"] = queue.dead_letter_key
    return arguments


def _mismatch(noun: str, name: str, error: ChannelPreconditionFailed) -> QueueMismatch:
    return QueueMismatch(
        f"The {noun} {name} exists on the broker with other arguments than this configuration asks for"
        f" ({', '.join(str(part) for part in error.args)}). Restore the former setting, or let the {noun}"
        f" run empty and delete it (rabbitmqctl delete_{noun} {name}); it is made anew at the next start.",
        name=name,
    )
