"""Fixtures with real servers. They start once per run, when first asked for; a missing program is an error."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from attune.store import migrate
from harness.postgresql import PostgreSQL
from harness.proxy import FaultProxy
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """The run's PostgreSQL; a test may stop, kill or pause it, the next one finds it running."""
    with PostgreSQL(durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """The run's RabbitMQ; a test may stop, kill or pause it, the next one finds it running."""
    with RabbitMQ() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """The run's Redis; a test may stop, kill or pause it, the next one finds it running."""
    with Redis() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgreSQL) -> Iterator[str]:
    """A fresh database of the test's own."""
    postgresql.ensure_running()
    url = postgresql.create_database()
    yield url
    postgresql.ensure_running()
    postgresql.drop_database(url)


@pytest.fixture(scope="session")
def migrated_template(postgresql: PostgreSQL) -> str:
    """A database with the schema of this version. Copying it is faster than migrating each test's own."""
    postgresql.ensure_running()
    name = "attune_migrated"
    url = postgresql.create_database(name)
    with ThreadPoolExecutor(1) as apart:  # the test that asks first may have a loop of its own
        apart.submit(lambda: asyncio.run(migrate.upgrade(url))).result()
    return name


@pytest.fixture
def migrated_url(postgresql: PostgreSQL, migrated_template: str) -> Iterator[str]:
    """A database of the test's own, with the schema."""
    postgresql.ensure_running()
    url = postgresql.create_database(like=migrated_template)
    yield url
    postgresql.ensure_running()
    postgresql.drop_database(url)


@pytest.fixture
def rabbitmq_url(rabbitmq: RabbitMQ) -> Iterator[str]:
    """A fresh virtual host of the test's own."""
    rabbitmq.ensure_running()
    url = rabbitmq.create_vhost()
    yield url
    rabbitmq.ensure_running()
    rabbitmq.delete_vhost(url)


@pytest.fixture
def redis_url(redis_server: Redis) -> str:
    """Database 0 of an empty Redis."""
    redis_server.ensure_running()
    redis_server.flush()
    return redis_server.url


@pytest.fixture
def proxy_to() -> Iterator[Callable[[str], FaultProxy]]:
    """Makes proxies to the host and port of an address; all of them end with the test."""
    with ExitStack() as proxies:
        yield lambda url: proxies.enter_context(FaultProxy.to(url))
