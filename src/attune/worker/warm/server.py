"""One warm interpreter, from its start to its end."""

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import structlog

from attune.worker.delivery import memory_file
from attune.worker.errors import CannotRun
from attune.worker.warm.boot import BOOT
from attune.worker.warm.forked import Forked
from attune.worker.warm.kinds import Kind
from attune.worker.warm.wire import Wire, encoded, pair

_INSIDE: Final = Path(__file__).parent / "inside"
_PATIENCE: Final = 20.0
_DEATH: Final = 1.0
_MOMENT: Final = 0.001
# Room in which a forked process can show the variables by which it is known.
_ROOM: Final = ("ATTUNE_WARM", "." * 1024)

_log = structlog.get_logger()


class Unfit(Exception):
    """This interpreter cannot be kept warm; a fresh start for each execution does as well."""


class Gone(Exception):
    """The interpreter died before it began what it was asked for; nothing of it was started."""


class _Facts(msgspec.Struct, frozen=True):
    """What an interpreter says of itself: `can_stay` if it has the means that a process which stays needs."""

    threads: int
    folders: list[str]
    can_stay: bool


class Server:
    """It forks what it is asked for and tells when that has ended; whoever asked reaps it."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.can_stay = False
        self.forked: dict[int, Forked] = {}
        self._numbers = count(1)
        self._starting: dict[int, asyncio.Future[Forked]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._folders: dict[str, int | None] = {}
        self._is_current = True
        self._look_at = 0.0
        self._popen = self._start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_open(self) -> bool:
        return self._wire.is_open

    def _start(self) -> subprocess.Popen[bytes]:
        """In a session of its own: what ends a run, or interrupts the worker, does not reach it."""
        ours, theirs = pair()
        words = self.kind.words
        with theirs:
            try:
                popen = subprocess.Popen(
                    (*words, "-c", BOOT, str(_INSIDE), str(theirs.fileno()), *words),
                    env=dict((*self.kind.environment, _ROOM)),
                    cwd=self.kind.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise Unfit(error.strerror) from None
        self._wire = Wire(ours, self._heard, self._lost)
        self._wire.send(encoded({"environment": dict(self.kind.environment), "room": _ROOM[0]}))
        return popen

    async def ready(self) -> None:
        """Raise Unfit if it never is."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self.close()
            raise Unfit("it did not answer") from None

    def is_current(self) -> bool:
        """Whether a fresh start would find the same: what is installed beside it is looked at only then.

        Of many starts in the same moment one looks for all.
        """
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _MOMENT
            self._is_current = all(
                _changed(folder) == since for folder, since in self._folders.items()
            )
        return self._is_current and self.is_open

    async def fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> Forked:
        """Raise Gone if the server died first, CannotRun if the system refuses.

        `descriptors` are the streams and, for a process that stays, its link. The request goes past the server, as a
        file in memory for the forked process: what one run is told is in no memory that another begins with.
        """
        if not self._wire.is_open:
            raise Gone
        number = next(self._numbers)
        answer: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._starting[number] = answer
        body = memory_file(encoded(request))
        script = "" if descriptors[3:] else request["arguments"][0]
        message = b"fork %d %s" % (number, os.fsencode(script))
        self._wire.send(message, (*descriptors[:3], body, *descriptors[3:]))
        try:
            return await answer
        except asyncio.CancelledError:
            if not answer.cancelled() and answer.exception() is None:
                _abandon(answer.result())
            raise
        finally:
            self._wire.withdraw(message)
            self._starting.pop(number, None)
            os.close(body)

    def close_if_idle(self) -> bool:
        """Whether it is closed now."""
        if self.is_open and not self.forked and not self._starting:
            self.close()
        return not self.is_open

    def close(self) -> None:
        """What it has forked goes on; it becomes ours. It is given time to reap those that are discharged."""
        self._wire.read()
        self._wire.close()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_DEATH)
        self._lost()

    def _heard(self, message: bytes) -> None:
        word, number, rest = message.split(b" ", 2)
        match word:
            case b"ready":
                self._greeted(msgspec.json.decode(rest, type=_Facts))
            case b"started":
                self._started(int(number), int(rest))
            case b"refused":
                self._refused(int(number), f"The process could not be started: {rest.decode()}.")
            case b"ended":
                pid, code = rest.split()
                self._ended(int(number), int(pid), int(code))

    def _greeted(self, facts: _Facts) -> None:
        self.can_stay = facts.can_stay
        self._folders = {folder: _changed(folder) for folder in facts.folders}
        if facts.threads > 1:
            self._ready.set_exception(Unfit("its start leaves threads running"))
            self.close()
        elif not self._ready.done():
            self._ready.set_result(None)

    def _started(self, number: int, pid: int) -> None:
        forked = self.forked[pid] = Forked(pid, self)
        answer = self._starting.pop(number, None)
        if answer is None or answer.done():
            _abandon(forked)
        else:
            answer.set_result(forked)

    def _refused(self, number: int, reason: str) -> None:
        answer = self._starting.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_exception(CannotRun(reason))

    def _ended(self, number: int, pid: int, code: int) -> None:
        """Also of one that ended before it could say its number."""
        forked = self.forked.get(pid)
        if forked is None:
            self._wire.send(b"reap %d " % pid)
            self._refused(number, "The process ended before it began.")
        else:
            forked.end(code)

    def discharge(self, pid: int) -> None:
        if self.forked.pop(pid, None) is not None:
            self._wire.send(b"reap %d " % pid)

    def listen(self, seconds: float) -> None:
        self._wire.wait(seconds)
        self._wire.read()

    def _lost(self) -> None:
        """Only after it has ended for good are those that it forked our children."""
        self._popen.kill()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_DEATH)
        last_words = _last_words(self._popen.stdout)
        if not self._ready.done():
            self._ready.set_exception(Unfit(last_words or "it ended at its start"))
            self._ready.exception()
        elif last_words:
            _log.warning("A warm interpreter failed.", last_words=last_words)
        for forked in self.forked.values():
            forked.adopt()
        self.forked.clear()
        for answer in self._starting.values():
            if not answer.done():
                answer.set_exception(Gone())
        self._starting.clear()


def _abandon(forked: Forked) -> None:
    """A start that nobody waits for any more."""
    forked.kill()
    forked.ended.add_done_callback(lambda _: forked.reap())


def _last_words(stream: IO[bytes] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        os.set_blocking(stream.fileno(), False)
        return (stream.read(4000) or b"").decode("utf-8", "replace").strip()


def _changed(folder: str) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - looked at before each run
    except OSError:
        return None
