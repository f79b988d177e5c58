"""Runs one peer in one case, in processes of its own, on the peers' interpreter: the only way in for a runner."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from bench.peers.environment import ARQ, ROOT, SHARED, Environment, provide

Case = Literal["free", "limit10", "limit1", "latency"]

TIMEOUT = 300.0
STDERR_TAIL = 4_000


class PeerFailed(Exception):
    """A peer ended badly, or not in time; carries the end of what it wrote."""


class PeerUnsupported(Exception):
    """The library has nothing of the kind; says what it lacks."""


class Peer(msgspec.Struct, frozen=True):
    """A library in one configuration, and the cases that it has an answer to."""

    name: str
    variant: str
    backend: str
    cases: tuple[Case, ...]
    environment: Environment = SHARED
    share: float = 1.0  # of the jobs that others get, so that a slow one takes no longer

    @property
    def title(self) -> str:
        return self.name if self.variant == "plain" else f"{self.name}, {self.variant}"


class PeerResult(msgspec.Struct, frozen=True):
    """One run. Seconds go from the first submission to the last finish; the percentiles belong to latency alone.

    `displaced` tells by how many places the job furthest from its place in the order of submission was off.
    """

    peer: str
    version: str
    variant: str
    case: str
    count: int
    seconds: float
    per_second: float
    p50_ms: float | None
    p99_ms: float | None
    in_order: bool | None
    displaced: int | None
    results: bool
    note: str


_WITHOUT_LIMIT_1: tuple[Case, ...] = ("free", "limit10", "latency")
_ALL: tuple[Case, ...] = ("free", "limit10", "limit1", "latency")

PEERS: tuple[Peer, ...] = (
    Peer("pgqueuer", "plain", "PostgreSQL", _ALL),
    Peer("pgqueuer", "ordered", "PostgreSQL", _ALL),
    Peer("pgqueuer", "results", "PostgreSQL", _ALL),
    Peer("dramatiq", "plain", "RabbitMQ", _WITHOUT_LIMIT_1),
    Peer("dramatiq", "results", "RabbitMQ, Redis", _WITHOUT_LIMIT_1),
    Peer("celery", "plain", "RabbitMQ", _WITHOUT_LIMIT_1),
    Peer("celery", "results", "RabbitMQ, Redis", _WITHOUT_LIMIT_1),
    Peer("celery", "late", "RabbitMQ", _WITHOUT_LIMIT_1),
    Peer("taskiq", "plain", "RabbitMQ", _WITHOUT_LIMIT_1),
    Peer("taskiq", "results", "RabbitMQ, Redis", _WITHOUT_LIMIT_1),
    Peer("arq", "plain", "Redis", _WITHOUT_LIMIT_1, ARQ),
    Peer("procrastinate", "plain", "PostgreSQL", _ALL, share=0.2),
    Peer("dbos", "plain", "PostgreSQL", _ALL, share=0.1),
    Peer("dbos", "sqlite", "SQLite", _ALL, share=0.05),
    Peer("huey", "plain", "SQLite", _WITHOUT_LIMIT_1, share=0.3),
)


def find_peer(name: str, variant: str) -> Peer:
    for peer in PEERS:
        if (peer.name, peer.variant) == (name, variant):
            return peer
    known = "; ".join(peer.title for peer in PEERS)
    raise LookupError(f"no peer {name!r} with variant {variant!r}; there are: {known}")


async def run_peer(
    name: str,
    variant: str,
    case: str,
    count: int,
    servers: Mapping[str, str],
    *,
    timeout: float = TIMEOUT,
) -> PeerResult:
    """Measure once. `servers` has the URLs postgresql, rabbitmq and redis; they should hold nothing yet."""
    python = await asyncio.to_thread(provide, find_peer(name, variant).environment)
    command = [
        *(str(python), "-m", f"bench.peers.{name}"),
        *("--case", case, "--count", str(count), "--variant", variant),
        *("--servers", msgspec.json.encode(servers).decode()),
    ]
    return read_result(await run_command(command, timeout=timeout))


def read_result(output: str) -> PeerResult:
    """The last line is the answer; a library may have written before it."""
    lines = output.strip().splitlines()
    if not lines:
        raise PeerFailed("the peer wrote no result")
    try:
        found = msgspec.json.decode(lines[-1], type=dict[str, object])
        if "unsupported" in found:
            raise PeerUnsupported(str(found["unsupported"]))
        return msgspec.convert(found, PeerResult)
    except msgspec.DecodeError as error:
        raise PeerFailed(f"the peer's last line is no result ({error}): {lines[-1]}") from error


async def run_command(command: Sequence[str | Path], *, timeout: float) -> str:
    """What it wrote to its output. Nothing of its process group is left, however it ended."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=_environment(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    reading = asyncio.ensure_future(process.communicate())
    try:
        await asyncio.wait([reading], timeout=timeout)
        ended = reading.done()
    finally:
        _kill_group(process.pid)
    output, errors = await reading
    if not ended or process.returncode != 0:
        how = f"exited with {process.returncode}" if ended else f"did not end within {timeout:g} s"
        tail = errors.decode(errors="replace")[-STDERR_TAIL:]
        raise PeerFailed(f"`{' '.join(map(str, command[1:4]))}` {how}:\n{tail}")
    return output.decode()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """No setting of this machine for a library, no proxy: everything is on loopback."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
