"""Processes that stay and have nothing to do: kept for a while, for the next execution of their action."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from attune.worker.warm.kinds import Kind
from attune.worker.warm.server import Gone, Server, Unfit
from attune.worker.warm.servers import Servers
from attune.worker.warm.stayer import Stayer, start

_MOST_IDLE: Final = 64
_IDLE_SECONDS: Final = 60.0
_LAST_PATIENCE: Final = 1.0
_TRIES: Final = 3


class Key(msgspec.Struct, frozen=True):
    """What a process that stays was started for; one serves no other."""

    ref: str
    script: str
    pack: Path | None
    kind: Kind


class Pool:
    """`welcome` hears of each new process, `idle_seconds` is how long one waits for more."""

    def __init__(
        self,
        servers: Servers,
        welcome: Callable[[Stayer], None],
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self._servers = servers
        self._welcome = welcome
        self._idle_seconds = idle_seconds
        self._idle: dict[Stayer, tuple[Key, asyncio.TimerHandle]] = {}
        self._keys: dict[str, Key] = {}
        self._leaving: set[Stayer] = set()

    @property
    def idle(self) -> int:
        return len(self._idle)

    async def take(self, key: Key, request: dict[str, Any]) -> Stayer:
        """Raise Unfit, CannotRun. Those that wait for the action as it was before end now."""
        former = self._keys.get(key.ref, key)
        if former != key:
            self._let_go_of(former)
        self._keys[key.ref] = key
        for _ in range(_TRIES):
            try:
                server = await self._servers.get(key.kind)
                if not server.can_stay:
                    raise Unfit("it has no way to take in orphans")
                return self._waiting(key, server) or await self._new(server, request)
            except Gone:
                continue
        raise Unfit("it keeps dying")

    async def _new(self, server: Server, request: dict[str, Any]) -> Stayer:
        stayer = await start(server, request)
        self._welcome(stayer)
        return stayer

    def give_back(self, key: Key, stayer: Stayer) -> None:
        timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._let_go, stayer)
        self._idle[stayer] = key, timer
        if self._keys.get(key.ref) != key or len(self._idle) > _MOST_IDLE:
            self._let_go(stayer)

    def _waiting(self, key: Key, server: Server) -> Stayer | None:
        """The one that ran last, whose memory is the warmest."""
        for stayer, (its, timer) in reversed(self._idle.copy().items()):
            if its == key:
                if stayer.server is server and stayer.is_ready():
                    timer.cancel()
                    del self._idle[stayer]
                    return stayer
                self._let_go(stayer)
        return None

    def _let_go_of(self, key: Key) -> None:
        for stayer, (its, _) in self._idle.copy().items():
            if its == key:
                self._let_go(stayer)

    def _let_go(self, stayer: Stayer) -> None:
        _, timer = self._idle.pop(stayer)
        timer.cancel()
        self._leaving = {each for each in self._leaving if not each.is_gone}
        self._leaving.add(stayer)
        stayer.let_go()

    async def close(self) -> None:
        for stayer in list(self._idle):
            self._let_go(stayer)
        await asyncio.gather(*(each.until_ended(_LAST_PATIENCE) for each in self._leaving))
        self._leaving.clear()
