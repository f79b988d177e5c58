"""Messages between the worker and what it started, each whole, with descriptors beside them."""

from __future__ import annotations

import array
import socket

LONGEST = 128 * 1024
_BESIDE = socket.CMSG_SPACE(5 * array.array("i").itemsize)


class Link:
    """The end of a pair of sockets that keep messages apart. Nobody at the other end means None."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.settimeout(None)
        self._room = bytearray(LONGEST)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: str) -> None:
        self._socket.send(message.encode("utf-8", "surrogateescape"))

    def receive(self) -> tuple[bytes, list[int]] | None:
        try:
            size, beside, _flags, _from = self._socket.recvmsg_into(
                [self._room], _BESIDE, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return None
        found = array.array("i")
        for level, kind, content in beside:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
        return (bytes(memoryview(self._room)[:size]), list(found)) if size else None
