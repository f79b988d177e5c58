import aiormq
import pytest

from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_until


async def test_a_virtual_host_tells_its_queues(rabbitmq: RabbitMQ, rabbitmq_url: str) -> None:
    connection = await aiormq.connect(rabbitmq_url)
    channel = await connection.channel()
    await channel.queue_declare("letters", durable=True, arguments={"x-message-ttl": 60_000})
    await channel.basic_publish(b"hello", routing_key="letters")

    def has_one_message() -> bool:
        return [queue["messages"] for queue in rabbitmq.queues(rabbitmq_url)] == [1]

    wait_until(has_one_message, what="the queue shows its message")
    [queue] = rabbitmq.queues(rabbitmq_url)
    assert (queue["name"], queue["consumers"]) == ("letters", 0)
    assert queue["arguments"] == {"x-message-ttl": 60_000}

    async def ignore(message: object) -> None:
        pass

    await channel.basic_consume("letters", ignore)
    wait_until(
        lambda: [queue["consumers"] for queue in rabbitmq.queues(rabbitmq_url)] == [1],
        what="the queue shows its consumer",
    )
    await connection.close()


async def test_the_server_can_close_its_clients_connections(
    rabbitmq: RabbitMQ, rabbitmq_url: str
) -> None:
    connection = await aiormq.connect(rabbitmq_url)
    wait_until(lambda: len(rabbitmq.connections(rabbitmq_url)) == 1, what="the connection shows")

    assert rabbitmq.close_connections(rabbitmq_url) == 1

    with pytest.raises(aiormq.exceptions.ConnectionClosed):
        await connection.closing


async def test_durable_messages_survive_a_kill(rabbitmq: RabbitMQ, rabbitmq_url: str) -> None:
    connection = await aiormq.connect(rabbitmq_url)
    channel = await connection.channel(publisher_confirms=True)
    await channel.queue_declare("letters", durable=True)
    persistent = aiormq.spec.Basic.Properties(delivery_mode=2)
    await channel.basic_publish(b"hello", routing_key="letters", properties=persistent)

    rabbitmq.kill()
    rabbitmq.start()

    again = await aiormq.connect(rabbitmq_url)
    message = await (await again.channel()).basic_get("letters", no_ack=True)
    assert message.body == b"hello"
    await again.close()
