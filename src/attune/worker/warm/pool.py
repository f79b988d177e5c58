"""Processes that stay and have nothing to do: kept for a while, for the next execution of their action."""

import asyncio
from collections.abc import Callable
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
    folder: str
    kind: Kind


class _Line:
    """Those that wait for one action, and since when; the one that ran last comes last."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.waiting: list[tuple[Stayer, float]] = []


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
        self._lines: dict[str, _Line] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: set[Stayer] = set()
        self.idle = 0

    async def take(self, key: Key, request: Callable[[], dict[str, Any]]) -> Stayer:
        """Raise Unfit, CannotRun. Those that wait for the action as it was before end now.

        `request` makes what a new process is told.
        """
        line = self._line(key)
        for _ in range(_TRIES):
            try:
                server = await self._servers.get(key.kind)
                if not server.can_stay:
                    raise Unfit("it has no way to take in orphans")
                return self._waiting(line, server) or await self._new(server, request())
            except Gone:
                continue
        raise Unfit("it keeps dying")

    async def _new(self, server: Server, request: dict[str, Any]) -> Stayer:
        stayer = await start(server, request)
        self._welcome(stayer)
        return stayer

    def give_back(self, key: Key, stayer: Stayer) -> None:
        line = self._lines.get(key.ref)
        wanted = line is not None and line.key == key and self.idle < _MOST_IDLE
        if line is None or not wanted or not stayer.is_free:
            self.dismiss(stayer)
            return
        loop = asyncio.get_running_loop()
        line.waiting.append((stayer, loop.time()))
        self.idle += 1
        if self._timer is None:
            self._timer = loop.call_later(self._idle_seconds, self._sweep)

    def _line(self, key: Key) -> _Line:
        line = self._lines.get(key.ref)
        if line is None or line.key != key:
            if line is not None:
                self._dismiss_all(line)
            line = self._lines[key.ref] = _Line(key)
        return line

    def _waiting(self, line: _Line, server: Server) -> Stayer | None:
        """The one that ran last, whose memory is the warmest. One that has just died says so when it is asked to run."""
        while line.waiting:
            stayer, _ = line.waiting.pop()
            self.idle -= 1
            if stayer.server is server and stayer.is_free:
                return stayer
            self.dismiss(stayer)
        return None

    def _sweep(self) -> None:
        """One timer for all: a process has most often been taken again long before it could end."""
        loop = asyncio.get_running_loop()
        longest_ago = loop.time() - self._idle_seconds
        for line in self._lines.values():
            while line.waiting and line.waiting[0][1] <= longest_ago:
                stayer, _ = line.waiting.pop(0)
                self.idle -= 1
                self.dismiss(stayer)
        since = [line.waiting[0][1] for line in self._lines.values() if line.waiting]
        self._timer = loop.call_at(min(since) + self._idle_seconds, self._sweep) if since else None

    def _dismiss_all(self, line: _Line) -> None:
        self.idle -= len(line.waiting)
        for stayer, _ in line.waiting:
            self.dismiss(stayer)
        line.waiting.clear()

    def dismiss(self, stayer: Stayer) -> None:
        """One that does nothing."""
        self._leaving = {each for each in self._leaving if not each.is_gone}
        self._leaving.add(stayer)
        stayer.let_go()

    async def close(self) -> None:
        for line in self._lines.values():
            self._dismiss_all(line)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*(each.until_ended(_LAST_PATIENCE) for each in self._leaving))
        self._leaving.clear()
