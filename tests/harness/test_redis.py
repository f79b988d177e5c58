from collections.abc import Iterator

import pytest
import redis

from harness.redis import Redis


@pytest.fixture
def client(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_a_test_finds_redis_empty(redis_server: Redis, client: "redis.Redis") -> None:
    client.set("name", "attune")
    redis_server.flush()

    assert client.dbsize() == 0


def test_a_killed_redis_has_forgotten_everything(
    redis_server: Redis, client: "redis.Redis"
) -> None:
    client.set("name", "attune")
    redis_server.kill()
    redis_server.start()

    assert client.get("name") is None
