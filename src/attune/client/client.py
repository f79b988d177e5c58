"""`Client` and `AsyncClient`: the same operations, one blocking and one awaited."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Generic, Self

import httpx2

from attune.client.accounts import Tokens
from attune.client.auth import Auth
from attune.client.catalog import Actions, Packs, Rules, Triggers
from attune.client.dead_letters import DeadLetters
from attune.client.decisions import Decisions
from attune.client.executions import Executions
from attune.client.happenings import Enforcements, Events
from attune.client.operations import Awaiting, Blocking, W, run
from attune.client.profiles import profiles_of
from attune.client.queues import Queues, Settings
from attune.client.servers import Server, find_server
from attune.client.session import PATIENT, Patience, Session
from attune.client.transports import AwaitingTransport, BlockingTransport, connection_options
from attune.client.workers import Workers

Keep = Callable[[Tokens], None]


def _keep_nowhere(_tokens: Tokens) -> None:
    pass


class _Operations(Generic[W]):
    def __init__(self, session: Session, way: type[W]) -> None:
        self.auth: Auth[W] = Auth(session, way)
        self.executions: Executions[W] = Executions(session, way)
        self.events: Events[W] = Events(session, way)
        self.enforcements: Enforcements[W] = Enforcements(session, way)
        self.packs: Packs[W] = Packs(session, way)
        self.actions: Actions[W] = Actions(session, way)
        self.triggers: Triggers[W] = Triggers(session, way)
        self.rules: Rules[W] = Rules(session, way)
        self.workers: Workers[W] = Workers(session, way)
        self.queues: Queues[W] = Queues(session, way)
        self.settings: Settings[W] = Settings(session, way)
        self.decisions: Decisions[W] = Decisions(session, way)
        self.dead_letters: DeadLetters[W] = DeadLetters(session, way)
        self._session = session

    @property
    def server(self) -> Server:
        return self._session.server


class Client(_Operations[Blocking]):
    """Blocks until an answer is there. May be used by several threads.

    Without a token only what is public can be asked for; `auth.login` gets one. `keep` is told of new tokens.
    """

    def __init__(
        self,
        url: str | Server,
        token: str | None = None,
        *,
        patience: Patience = PATIENT,
        keep: Keep = _keep_nowhere,
        http: httpx2.Client | None = None,
    ) -> None:
        server = _server(url, token)
        http = http or httpx2.Client(**connection_options(server.url))
        super().__init__(Session(BlockingTransport(http), server, patience, keep), Blocking)

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] = os.environ,
        *,
        url: str | None = None,
        data_dir: Path | None = None,
        patience: Patience = PATIENT,
    ) -> Self:
        """The server and token that the command line would use here."""
        server = find_server(environ, url=url, data_dir=data_dir)
        return cls(server, patience=patience, keep=_keeper(environ, server))

    def close(self) -> None:
        run(self._session.transport.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_Operations[Awaiting]):
    """`Client` for code that runs in an event loop."""

    def __init__(
        self,
        url: str | Server,
        token: str | None = None,
        *,
        patience: Patience = PATIENT,
        keep: Keep = _keep_nowhere,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        server = _server(url, token)
        http = http or httpx2.AsyncClient(**connection_options(server.url))
        super().__init__(Session(AwaitingTransport(http), server, patience, keep), Awaiting)

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] = os.environ,
        *,
        url: str | None = None,
        data_dir: Path | None = None,
        patience: Patience = PATIENT,
    ) -> Self:
        """The server and token that the command line would use here."""
        server = find_server(environ, url=url, data_dir=data_dir)
        return cls(server, patience=patience, keep=_keeper(environ, server))

    async def close(self) -> None:
        await self._session.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _server(url: str | Server, token: str | None) -> Server:
    return url if isinstance(url, Server) else Server(url, access_token=token)


def _keeper(environ: Mapping[str, str], server: Server) -> Keep:
    """Renewed tokens of a login profile go back into it."""
    profiles = profiles_of(environ)
    return lambda tokens: profiles.renew(server.url, tokens)
