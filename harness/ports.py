"""Loopback ports that a server can keep across restarts."""

import random
import socket

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel takes ports for outgoing connections: a server that is down for a
# moment would otherwise find its port taken by a client that tries to reach it.
CANDIDATES = range(20_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on now."""
    for _ in range(200):
        port = random.choice(CANDIDATES)  # noqa: S311
        if _is_free(port):
            return port
    raise OSError(f"found no free port on {LOOPBACK} in {CANDIDATES}")


def answers(port: int, timeout: float = 1.0) -> bool:
    """Whether somebody accepts connections on the port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=timeout).close()
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
