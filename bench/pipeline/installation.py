"""A whole installation as real processes, on either profile, with a client that may do everything."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from attune.client.client import AsyncClient
from attune.store import migrate
from bench.pipeline.books import Books, PostgreSQLBooks, SQLiteBooks
from bench.pipeline.pack import write_pack
from bench.pipeline.process import AttuneProcess
from harness.ports import free_port
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

EMBEDDED: Final = "embedded"
SERVERS: Final = "PostgreSQL + RabbitMQ"
FREE_CAPACITY: Final = 100
LIMITED_CAPACITY: Final = 10

_LOGIN: Final = "bench"
_PASSWORD: Final = "a password of the benchmarks"  # noqa: S105 - of an installation that lives for minutes
_LONGEST_QUEUE: Final = "1000000"


@dataclass
class Installation:
    """`roles` has each process by its name, `variables` what they were started with."""

    profile: str
    address: str
    variables: dict[str, str]
    books: Books
    client: AsyncClient
    token: str
    roles: dict[str, AttuneProcess] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any) -> None:
        """For the few operations that the client has no name for."""
        async with httpx2.AsyncClient(base_url=self.address, trust_env=False) as http:
            answer = await http.request(
                method,
                f"/api/v1{path}",
                json=body,
                headers={"Authorization": f"Bearer {self.token}"},
            )
            answer.raise_for_status()


@asynccontextmanager
async def embedded(folder: Path, capacity: int) -> AsyncIterator[Installation]:
    """Everything in one process, on SQLite."""
    variables = _variables(folder, capacity)
    async with AsyncExitStack() as stack:
        up = _started(stack, AttuneProcess("up", variables=variables))
        up.wait_until_ready()
        books = SQLiteBooks(folder / "attune.db")
        yield await _opened(stack, EMBEDDED, folder, variables, books, {"up": up})


@asynccontextmanager
async def servers(
    folder: Path, capacity: int, postgresql: PostgreSQL, rabbitmq: RabbitMQ
) -> AsyncIterator[Installation]:
    """An API, an executor and a worker, each a process of its own."""
    url = postgresql.create_database()
    variables = {
        **_variables(folder, capacity),
        "ATTUNE__DATABASE__URL": url,
        "ATTUNE__MESSAGE_QUEUE__URL": rabbitmq.create_vhost(),
        "ATTUNE__SECURITY__JWT_SECRET": "a secret of the benchmarks, long enough",
        "ATTUNE__SECURITY__ENCRYPTION_KEY": "another secret of the benchmarks",
    }
    await migrate.upgrade(url)
    async with AsyncExitStack() as stack:
        roles: dict[str, AttuneProcess] = {}
        for names in (("api",), ("executor", "worker")):
            for name in names:
                roles[name] = _started(stack, AttuneProcess(name, variables=variables))
            for name in names:
                roles[name].wait_until_ready()
        books = await PostgreSQLBooks.open(url)
        yield await _opened(stack, SERVERS, folder, variables, books, roles)


def _variables(folder: Path, capacity: int) -> dict[str, str]:
    folder.mkdir(parents=True)
    return {
        "ATTUNE__DATA_DIR": str(folder),
        "ATTUNE__SERVER__PORT": str(free_port()),
        "ATTUNE__SECURITY__ADMIN_LOGIN": _LOGIN,
        "ATTUNE__SECURITY__ADMIN_PASSWORD": _PASSWORD,
        "ATTUNE__WORKER__CAPACITY": str(capacity),
        "ATTUNE__EXECUTOR__QUEUE__MAX_QUEUE_LENGTH": _LONGEST_QUEUE,
        "ATTUNE__LOG__FORMAT": "json",
    }


def _started(stack: AsyncExitStack, process: AttuneProcess) -> AttuneProcess:
    stack.callback(process.stop)
    return process


async def _opened(
    stack: AsyncExitStack,
    profile: str,
    folder: Path,
    variables: dict[str, str],
    books: Books,
    roles: dict[str, AttuneProcess],
) -> Installation:
    stack.push_async_callback(books.close)
    address = f"http://127.0.0.1:{variables['ATTUNE__SERVER__PORT']}"
    client = await stack.enter_async_context(AsyncClient(address))
    token = (await client.auth.login(_LOGIN, _PASSWORD)).access_token
    await client.packs.upload(write_pack(folder / "bench"))
    return Installation(profile, address, variables, books, client, token, roles)
