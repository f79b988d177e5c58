"""Loopback ports that a server can keep across restarts."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel takes ports for outgoing connections: a server that is down for a
# moment would otherwise find its port taken by a client that tries to reach it.
CANDIDATES = range(20_000, 32_000)

# Descriptors, held for as long as this process lives, so that no other takes a port whose server is down just now.
_CLAIMS: Final[dict[int, int]] = {}


def free_port() -> int:
    """A port that nobody listens on now, and that nobody else is given while this process lives."""
    for port in random.sample(CANDIDATES, k=min(200, len(CANDIDATES))):
        if _claim(port) and _is_free(port):
            return port
    raise OSError(f"found no free port on {LOOPBACK} in {CANDIDATES}")


def answers(port: int, timeout: float = 1.0) -> bool:
    """Whether somebody accepts connections on the port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=timeout).close()
    except OSError:
        return False
    return True


def _claim(port: int) -> bool:
    if port in _CLAIMS:
        return False
    folder = Path(tempfile.gettempdir()) / f"attune-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    claim = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(claim)
        return False
    _CLAIMS[port] = claim
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
