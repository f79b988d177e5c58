"""Each arrow of the flow is told on the bus, under the specification's names."""

import asyncio
from typing import Any

import pytest

from attune.bus.topology import broadcast_queue
from attune.kernel.envelope import Envelope
from attune.kernel.messages import (
    ExecutionCompleted,
    ExecutionRequested,
    ExecutionStatusChanged,
    MessageType,
)
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.world import World, eventually

TYPES = (
    MessageType.EVENT_CREATED,
    MessageType.ENFORCEMENT_CREATED,
    MessageType.EXECUTION_REQUESTED,
    MessageType.EXECUTION_STATUS_CHANGED,
    MessageType.EXECUTION_COMPLETED,
)


async def listen(world: World, *kinds: MessageType) -> list[Envelope]:
    """What is heard of these from now on."""
    heard: list[Envelope] = []

    async def hear(envelope: Envelope) -> None:
        heard.append(envelope)

    queue = broadcast_queue("a-test", *kinds)
    await world.bus.declare(queue)
    await world.bus.consume(queue.name, hear)
    return heard


async def test_from_the_event_to_the_completion_every_arrow_has_its_message(world: World) -> None:
    heard = await listen(world, *TYPES)
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
    assert statuses == ["requested", "scheduled", "running", "completed"]
    sources = {envelope.message_type: envelope.source for envelope in heard}
    assert sources[MessageType.EXECUTION_COMPLETED] == "worker:local"
    assert all(envelope.version == 1 for envelope in heard)


@pytest.mark.parametrize("kind", [MessageType.EXECUTION_STATUS_CHANGED, MessageType.EXECUTION_NEWS])
async def test_what_is_handed_over_at_once_is_told_by_its_worker_from_its_making_to_its_end(
    world: World, kind: MessageType
) -> None:
    """Two processes that tell of one execution could overtake each other."""
    heard = await listen(world, kind)
    execution = await world.run("core.noop")

    async def changes() -> list[tuple[Any, ...]] | None:
        found = [
            (item.execution_id, item.old_status, item.status)
            for envelope in heard
            for item in envelope.items
            if isinstance(item, ExecutionStatusChanged)
        ]
        return found if found and found[-1][-1] == "completed" else None

    assert await eventually(changes) == [
        (execution.id, None, "requested"),
        (execution.id, "requested", "scheduled"),
        (execution.id, "running", "completed"),
    ]
    assert {envelope.source for envelope in heard} == {"worker:local"}


async def test_what_waits_is_told_by_whoever_accepted_it(still: World) -> None:
    heard = await listen(still, MessageType.EXECUTION_REQUESTED)
    await still.start_worker("full", capacity=0)
    execution = await still.run("core.noop")

    async def told() -> bool:
        return bool(heard)

    await eventually(told)
    [item] = heard[0].items
    assert isinstance(item, ExecutionRequested)
    assert (item.execution_id, item.action_ref) == (execution.id, "core.noop")
    assert not item.is_handed


async def test_a_completion_names_its_action_however_the_worker_came_to_it(still: World) -> None:
    told: list[ExecutionCompleted] = []

    async def hear(envelope: Envelope) -> None:
        told.extend(item for item in envelope.items if isinstance(item, ExecutionCompleted))

    queue = broadcast_queue("a-test", MessageType.EXECUTION_COMPLETED)
    await still.bus.declare(queue)
    await still.bus.consume(queue.name, hear)
    await still.start_worker(capacity=1)
    # The first by an order, the others by the end of the one before.
    asked = await still.flow.request(Order((Request(action_ref="core.noop"),) * 3))
    await still.over()

    async def complete() -> bool:
        return len(told) == len(asked)

    await eventually(complete)
    assert {one.execution_id: (one.action_id, one.action_ref) for one in told} == {
        one.id: (one.action, "core.noop") for one in asked
    }


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
