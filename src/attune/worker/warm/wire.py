"""The worker's end of a link to an interpreter: messages that never make the loop wait."""

import asyncio
import errno
import marshal
import os
import select
import socket
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

LONGEST: Final = 128 * 1024
_MESSAGES_AT_ONCE: Final = 64
_MARSHAL_VERSION: Final = 4
# Also for descriptors: only so many may be on their way.
_NO_ROOM: Final = frozenset({errno.EAGAIN, errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM})

OnMessage = Callable[[bytes], None]


def pair() -> tuple[socket.socket, socket.socket]:
    """Ours, and the one to hand over."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def encoded(message: dict[str, Any] | tuple[Any, ...]) -> bytes:
    """In the one format that every Python reads without any code of its own, and that holds all its texts."""
    return marshal.dumps(message, _MARSHAL_VERSION)


class Wire:
    """`on_end` is called once, when nobody holds the other end any more; not after `close`.

    `unread` tells then whether a message was left that the other end has not taken.
    """

    def __init__(
        self, ours: socket.socket, on_message: OnMessage, on_end: Callable[[], None]
    ) -> None:
        self._socket = ours
        self._on_message = on_message
        self._on_end = on_end
        self._unsent: deque[tuple[bytes, Sequence[int]]] = deque()
        self._room = bytearray(LONGEST)
        self._loop = asyncio.get_running_loop()
        self.unread = False
        ours.settimeout(0)
        self._loop.add_reader(ours.fileno(), self._read_one)

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Now, or when there is room: whoever sends descriptors keeps them open until the answer, or withdraws."""
        if not self.is_open:
            self.unread = True
            return
        self._unsent.append((message, descriptors))
        if len(self._unsent) == 1 and not self._send_all():
            self._loop.add_writer(self._socket.fileno(), self._send_later)

    def withdraw(self, message: bytes) -> bool:
        """Whether it had not been sent yet."""
        before = len(self._unsent)
        self._unsent = deque(each for each in self._unsent if each[0] is not message)
        return len(self._unsent) < before

    def wait(self, seconds: float) -> None:
        """In place, for when there is no time to let the loop go on."""
        if self.is_open:
            select.select([self._socket], [], [], seconds)

    def close(self) -> None:
        if self.is_open:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._unsent.clear()

    def _send_later(self) -> None:
        if self._send_all() and self.is_open:
            self._loop.remove_writer(self._socket.fileno())

    def _send_all(self) -> bool:
        """Whether nothing waits any more; a lost link is noticed by the reading."""
        while self._unsent:
            message, descriptors = self._unsent[0]
            try:
                self._send_now(message, descriptors)
            except ConnectionError:
                self._unsent.clear()
                self._break_off()
                return True
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                return False
            self._unsent.popleft()
        return True

    def _send_now(self, message: bytes, descriptors: Sequence[int]) -> None:
        if not descriptors:
            self._socket.send(message)
            return
        rights = array("i", descriptors).tobytes()
        self._socket.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    def read(self) -> bool:
        """What has come so far. Whether there may be more."""
        return all(self._read_one() for _ in range(_MESSAGES_AT_ONCE))

    def _break_off(self) -> None:
        """The other end has not read all. What it said before is read to its end: of that uvloop tells only once."""
        self.unread = True
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self.read():
            self._loop.call_soon(self._read_on)

    def _read_one(self) -> bool:
        """Whether there may be more; the loop asks again as long as there is."""
        if not self.is_open:
            return False
        try:
            size = self._socket.recv_into(self._room)
        except BlockingIOError:
            return False
        except ConnectionError:
            self._break_off()
            return True
        if not size:
            self.close()
            self._on_end()
            return False
        self._on_message(bytes(memoryview(self._room)[:size]))
        return True


def close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
