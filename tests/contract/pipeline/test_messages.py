"""Each arrow of the flow is told on the bus, under the specification's names."""

import asyncio

from attune.bus.topology import broadcast_queue
from attune.kernel.envelope import Envelope
from attune.kernel.messages import ExecutionStatusChanged, MessageType
from tests.contract.pipeline.world import World, eventually

TYPES = (
    MessageType.EVENT_CREATED,
    MessageType.ENFORCEMENT_CREATED,
    MessageType.EXECUTION_REQUESTED,
    MessageType.EXECUTION_STATUS_CHANGED,
    MessageType.EXECUTION_COMPLETED,
)


async def test_from_the_event_to_the_completion_every_arrow_has_its_message(world: World) -> None:
    heard: list[Envelope] = []

    async def hear(envelope: Envelope) -> None:
        heard.append(envelope)

    queue = broadcast_queue("a-test", *TYPES)
    await world.bus.declare(queue)
    await world.bus.consume(queue.name, hear)
    await world.rule(action_ref="core.sleep", action_params={"seconds": 0.5})
    await world.emit({})
    await world.over()

    async def complete() -> bool:
        return {envelope.message_type for envelope in heard} == set(TYPES)

    await eventually(complete)
    statuses = [
        item.status.value
        for envelope in heard
        for item in envelope.items
        if isinstance(item, ExecutionStatusChanged)
    ]
    assert statuses == ["scheduled", "running", "completed"]
    sources = {envelope.message_type: envelope.source for envelope in heard}
    assert sources[MessageType.EXECUTION_COMPLETED] == "worker:local"
    assert all(envelope.version == 1 for envelope in heard)


async def test_the_hand_off_goes_to_the_workers_own_queue_and_carries_no_parameter(
    still: World,
) -> None:
    worker = await still.start_worker("quiet")
    service = worker._service
    assert service is not None
    await service._subscription.cancel()  # type: ignore[union-attr]
    orders: asyncio.Queue[Envelope] = asyncio.Queue()
    await still.bus.consume("attune.execution.worker.1", orders.put)
    execution = await still.run("core.echo", message="a secret word")
    envelope = await asyncio.wait_for(orders.get(), 20)
    assert envelope.message_type is MessageType.EXECUTION_SCHEDULED
    [item] = envelope.items
    assert (item.execution_id, item.worker_id, item.attempt) == (execution.id, 1, 1)  # type: ignore[attr-defined]
    assert "secret" not in repr(envelope)
