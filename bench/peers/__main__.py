"""`python -m bench.peers`: every peer in every case that it has an answer to, round after round, and a table."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.run import PEERS, Case, Peer, PeerFailed, PeerResult, run_peer
from bench.peers.servers import PeerServers
from bench.peers.table import CASES, as_json, as_text, summarise

COUNTS: dict[Case, int] = {"free": 10_000, "limit10": 10_000, "limit1": 1_000, "latency": 200}
QUICK_COUNTS: dict[Case, int] = {"free": 1_000, "limit10": 1_000, "limit1": 100, "latency": 50}


def main() -> int:
    options = _options()
    counts = QUICK_COUNTS if options.quick else COUNTS
    with PeerServers() as servers:
        runs, failures = asyncio.run(
            _rounds(servers, options.only, options.cases, counts, options.rounds)
        )
    summaries = summarise(runs)
    print(as_text(summaries))
    if options.json:
        options.json.write_text(json.dumps(as_json(summaries), indent=2) + "\n")
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--only", type=_peers, default=PEERS, help="names, with commas between")
    parser.add_argument("--cases", type=_cases, default=CASES, help="cases, with commas between")
    parser.add_argument("--rounds", type=int, default=3, help="how often (default: 3)")
    parser.add_argument("--quick", action="store_true", help="fewer jobs in each run")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


def _peers(text: str) -> tuple[Peer, ...]:
    names = _known("peer", text, sorted({peer.name for peer in PEERS}))
    return tuple(peer for peer in PEERS if peer.name in names)


def _cases(text: str) -> tuple[str, ...]:
    return tuple(_known("case", text, CASES))


def _known(what: str, text: str, names: Sequence[str]) -> list[str]:
    asked = text.split(",")
    for name in asked:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no {what} {name!r}; there are: {', '.join(names)}")
    return asked


async def _rounds(
    servers: PeerServers,
    peers: Sequence[Peer],
    cases: Sequence[str],
    counts: dict[Case, int],
    rounds: int,
) -> tuple[list[PeerResult], int]:
    """All peers in a case, then the next case, so that what else the machine does hits all of them alike."""
    runs: list[PeerResult] = []
    failures = 0
    for _ in range(rounds):
        for case in (case for case in counts if case in cases):
            for peer in (peer for peer in peers if case in peer.cases):
                try:
                    run = await _once(servers, peer, case, counts[case])
                    runs.append(run)
                    print(f"{peer.title}, {case}: {run.per_second:,.0f}/s", file=sys.stderr)
                except PeerFailed as failure:
                    failures += 1
                    print(f"{peer.title}, {case}: {failure}", file=sys.stderr)
    return runs, failures


async def _once(servers: PeerServers, peer: Peer, case: Case, count: int) -> PeerResult:
    urls = servers.fresh()
    jobs = count if case == "latency" else max(1, int(count * peer.share))
    try:
        return await run_peer(peer.name, peer.variant, case, jobs, urls)
    finally:
        servers.forget(urls)


if __name__ == "__main__":
    sys.exit(main())
