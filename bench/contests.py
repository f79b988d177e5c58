"""Attune beside its peers on the same work, round by round: each profile of Attune, then peer after peer.

A peer stands beside the profile of Attune with the same kind of database: SQLite beside the embedded one, everything
else beside PostgreSQL and RabbitMQ.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.chart import Bar
from bench.measure import CannotTakePart, Case, Done, Gauge
from bench.peers.run import PEERS, Peer, PeerFailed, PeerResult, PeerUnsupported, run_peer
from bench.peers.servers import PeerServers
from bench.pipeline.cases import (
    QUICK,
    Sizes,
    embedded_pair,
    latency_gauge,
    servers_pair,
    throughput,
)
from bench.pipeline.installation import EMBEDDED, SERVERS
from bench.results import MILLISECONDS, Result
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

LATENCY: Final = "latency"
# Attune's name of each of the peers' cases.
TITLES: Final = {
    "free": "free",
    "limit10": "limit 10",
    "limit1": "limit 1",
    LATENCY: "idle latency",
}
_FULL: Final = Sizes(free=3_000, limit10=10_000, limit1=500, latency=200)
_SQLITE: Final = "SQLite"
_FEWEST: Final = 100
# Of several variants of one peer, the one that promises most of what Attune does.
_NEAREST: Final = ("results", "ordered", "plain")


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case | Gauge]]:
    sizes = QUICK if quick else _FULL
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgresql = stack.enter_context(PostgreSQL())
        rabbitmq = stack.enter_context(RabbitMQ())
        ours = [
            await embedded_pair(stack, folder),
            await servers_pair(stack, folder, postgresql, rabbitmq),
        ]
        contest = Contest(stack.enter_context(PeerServers()), sizes)
        attune: list[Case | Gauge] = []
        for pair in ours:
            attune += [*throughput(pair, sizes), latency_gauge(pair, sizes)]
        yield in_turn([*attune, *contest.cases(nearest(PEERS) if quick else PEERS)])


def nearest(peers: Sequence[Peer]) -> list[Peer]:
    """One variant of each, for a quick run."""
    ranked = sorted(
        (peer for peer in peers if peer.variant in _NEAREST),
        key=lambda peer: _NEAREST.index(peer.variant),
    )
    found = {peer.name: peer for peer in reversed(ranked)}
    return [peer for peer in peers if found.get(peer.name) == peer]


def in_turn(cases: Sequence[Case | Gauge]) -> list[Case | Gauge]:
    """Everybody's free, then everybody's limit 10, and so on: what is compared is close together in time."""
    order = list(TITLES.values())
    return sorted(cases, key=lambda case: order.index(case.name.rpartition(": ")[2]))


class Contest:
    def __init__(self, servers: PeerServers, sizes: Sizes) -> None:
        self._servers = servers
        self._counts = {
            "free": sizes.free,
            "limit10": sizes.limit10,
            "limit1": sizes.limit1,
            LATENCY: sizes.latency,
        }

    def cases(self, peers: Sequence[Peer]) -> list[Case | Gauge]:
        return [self._case(peer, case) for peer in peers for case in peer.cases]

    def _case(self, peer: Peer, case: str) -> Case | Gauge:
        profile = EMBEDDED if peer.backend == _SQLITE else SERVERS
        name, beside = f"{peer.title}: {TITLES[case]}", f"{profile}: {TITLES[case]}"
        if case == LATENCY:
            return Gauge(name, MILLISECONDS, partial(self._latency, peer), beside)
        return Case(name, partial(self._throughput, peer, case), beside)

    async def _throughput(self, peer: Peer, case: str) -> Done:
        found = await self._once(peer, case)
        return Done(found.count, found.seconds)

    async def _latency(self, peer: Peer) -> Mapping[str, float]:
        found = await self._once(peer, LATENCY)
        if found.p50_ms is None or found.p99_ms is None:
            raise CannotTakePart("it told no latency")
        return {"p50": found.p50_ms, "p99": found.p99_ms}

    async def _once(self, peer: Peer, case: str) -> PeerResult:
        urls = self._servers.fresh()
        try:
            return await run_peer(peer.name, peer.variant, case, self._count(peer, case), urls)
        except (PeerFailed, PeerUnsupported) as error:
            raise CannotTakePart(str(error).strip().splitlines()[-1]) from error
        finally:
            self._servers.forget(urls)

    def _count(self, peer: Peer, case: str) -> int:
        full = self._counts[case]
        return max(round(full * peer.share), min(full, _FEWEST))


def bars(results: Sequence[Result]) -> list[Bar]:
    """What the chart shows: of the latencies, the median one."""
    found = []
    for result in results:
        who, _, case = result.name.rpartition(": ")
        if result.median is None or case.endswith(", p99"):
            continue
        ours = who in (EMBEDDED, SERVERS)
        title = f"Attune, {who}" if ours else who
        found.append(Bar(case.removesuffix(", p50"), title, result.median, result.unit, ours))
    return found
