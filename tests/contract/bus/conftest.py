"""`bus_world` runs a test once on each adapter; `rabbit_world` is for what only RabbitMQ can suffer."""

from collections.abc import AsyncIterator

import pytest

from harness.rabbitmq import RabbitMQ
from tests.contract.bus.worlds import MemoryWorld, RabbitWorld, World


@pytest.fixture(params=["memory", "rabbitmq"])
async def bus_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        world: World = MemoryWorld()
    else:
        server = request.getfixturevalue("rabbitmq")
        world = RabbitWorld(server, request.getfixturevalue("rabbitmq_url"))
    yield world
    await world.start()
    await world.close()


@pytest.fixture
async def memory_world() -> AsyncIterator[MemoryWorld]:
    world = MemoryWorld()
    yield world
    await world.close()


@pytest.fixture
async def rabbit_world(rabbitmq: RabbitMQ, rabbitmq_url: str) -> AsyncIterator[RabbitWorld]:
    world = RabbitWorld(rabbitmq, rabbitmq_url)
    yield world
    await world.start()
    await world.close()
