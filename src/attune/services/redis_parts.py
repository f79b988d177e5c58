"""The parts of an executor whose queues Redis keeps beside the database."""

from dataclasses import dataclass

from attune.pipeline.flow import Flow
from attune.pipeline.processors.proposals import Proposals
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.mirror import RedisMirror
from attune.pipeline.queues.redis.queue import RedisQueue
from attune.services.base import Base


class RedisPart:
    """Never waited for: while Redis is away the database does its work."""

    name = "redis"

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def stop(self) -> None:
        await self._link.close()


@dataclass(frozen=True)
class RedisParts:
    link: RedisPart
    proposals: Proposals


def redis_parts(base: Base, flow: Flow, url: str) -> RedisParts:
    link = RedisLink(url, base.clock)
    mirror = RedisMirror(link, base.database, base.clock, base.ids)
    return RedisParts(RedisPart(link), Proposals(flow, RedisQueue(link), mirror, base.clock))
