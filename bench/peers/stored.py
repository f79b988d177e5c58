"""Results that a library keeps in Redis, counted: to ask for each would cost more than to make it."""

import redis

from bench.peers.contestant import until


class StoredResults:
    """One key for each result, in a Redis that holds nothing else."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)

    async def wait_for(self, count: int) -> bool:
        async def are_there() -> bool:
            return bool(self._redis.dbsize() >= count)

        return await until(are_there)

    def close(self) -> None:
        self._redis.close()
