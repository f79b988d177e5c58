"""The private servers on which peers are measured."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis


class PeerServers:
    """One of each, with every safeguard on, started once; each run finds them empty."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._postgresql = PostgreSQL()
        self._rabbitmq = RabbitMQ()
        self._redis = Redis()

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            for server in (self._postgresql, self._rabbitmq, self._redis):
                starting.enter_context(server)
            self._stack = starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def fresh(self) -> dict[str, str]:
        """A database and a virtual host that nobody has used, and an empty Redis."""
        self._redis.flush()
        return {
            "postgresql": self._postgresql.create_database(),
            "rabbitmq": self._rabbitmq.create_vhost(),
            "redis": self._redis.url,
        }

    def forget(self, urls: dict[str, str]) -> None:
        """Remove what fresh() made, with all that a run has left in it."""
        self._postgresql.drop_database(urls["postgresql"])
        self._rabbitmq.delete_vhost(urls["rabbitmq"])
