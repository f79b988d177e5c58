"""The one way in which all peers are measured. Runs on the peers' own interpreters.

Workers are up and have run jobs before the clock starts. It stops when the last job has run and, where the library
keeps books, when these say so too.
"""

import asyncio
import importlib.metadata
import json
import math
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.contest import Contest, Entry, Ledger, contest
from bench.peers.contestant import POLL, Contestant

WARMING = 1_000_000_000  # jobs that do not count have numbers from here
BURST = 40
START_TIMEOUT = 45.0
STOP_TIMEOUT = 5.0
LOG_TAIL = 3_000


class WorkersFailed(Exception):
    """The peer's workers ended or never ran a job; carries the end of what they wrote."""


class JobsDiffer(Exception):
    """Not every job ran exactly once."""


def main(kind: type[Contestant], loop_factory: Callable[[], Any] | None = None) -> None:
    """Take part once, and print one line of JSON."""
    chosen = contest()
    try:
        why = kind.unsupported.get(chosen.case)
        if why:
            print(json.dumps({"unsupported": why}))
            return
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            print(json.dumps(runner.run(Heat(kind()).run())), flush=True)
    finally:
        shutil.rmtree(chosen.scratch, ignore_errors=True)
        shutil.rmtree(Path(chosen.ledger).parent, ignore_errors=True)


class Heat:
    """One contestant's turn: start, warm up, measure, stop."""

    def __init__(self, peer: Contestant) -> None:
        self._peer = peer
        self._contest: Contest = peer.contest
        self._idle = self._contest.case == "latency"
        self._ledger = Ledger(self._contest.ledger, pipe=self._idle)
        self._log = Path(self._contest.scratch) / "workers.log"
        self._workers: list[subprocess.Popen[bytes]] = []

    async def run(self) -> dict[str, Any]:
        await self._peer.open()
        try:
            self._start_workers()
            await self._warm_up()
            found = await (self._latency() if self._idle else self._throughput())
        finally:
            self._stop_workers()
        await self._peer.close()
        self._ledger.close()
        return self._described(found)

    def _described(self, found: dict[str, Any]) -> dict[str, Any]:
        count = self._contest.count
        return {
            "peer": self._peer.distribution,
            "version": importlib.metadata.version(self._peer.distribution),
            "variant": self._contest.variant,
            "case": self._contest.case,
            "count": count,
            "per_second": round(count / found["seconds"], 1),
            "p50_ms": None,
            "p99_ms": None,
            "in_order": None,
            "displaced": None,
            "results": self._peer.results,
            "note": self._peer.remark,
            **found,
        }

    def _start_workers(self) -> None:
        with self._log.open("ab") as log:
            for command in self._peer.workers():
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                )
                self._workers.append(process)

    def _stop_workers(self) -> None:
        for process in self._workers:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT
        for process in self._workers:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _check_workers(self, deadline: float | None = None) -> None:
        ended = any(process.poll() is not None for process in self._workers)
        if ended or (deadline is not None and time.monotonic() > deadline):
            told = self._log.read_text(errors="replace")[-LOG_TAIL:]
            raise WorkersFailed(
                f"the workers {'ended' if ended else 'did not run a job in each process'}:\n{told}"
            )

    async def _warm_up(self) -> None:
        """Bursts of jobs until every process has run one."""
        deadline = time.monotonic() + START_TIMEOUT
        seen: set[int] = set()
        done = 0
        while len(seen) < self._peer.processes:
            self._check_workers(deadline)
            await self._peer.submit(range(WARMING + done, WARMING + done + BURST))
            done += BURST
            seen |= {entry.pid for entry in await self._warm_entries(done, deadline)}
        await self._peer.settle()

    async def _warm_entries(self, done: int, deadline: float) -> list[Entry]:
        if self._idle:
            return [self._next() for _ in range(BURST)]
        while len(self._ledger) < done:
            self._check_workers(deadline)
            await asyncio.sleep(POLL)
        return self._ledger.entries()

    def _next(self) -> Entry:
        while True:
            entry = self._ledger.next(timeout=1.0)
            if entry is not None:
                return entry
            self._check_workers()

    async def _throughput(self) -> dict[str, Any]:
        count, before = self._contest.count, len(self._ledger)
        start = time.monotonic_ns()
        await self._peer.submit(range(count))
        while len(self._ledger) < before + count:
            self._check_workers()
            await asyncio.sleep(POLL)
        settled = await self._peer.settle()
        end = time.monotonic_ns()
        ran = self._ledger.entries()[before:]
        if not settled:
            end = max(entry.at_ns for entry in ran)
        return {"seconds": round((end - start) / 1e9, 6), **order([entry.number for entry in ran])}

    async def _latency(self) -> dict[str, Any]:
        times = []
        for number in range(self._contest.count):
            start = time.monotonic_ns()
            answered = await self._peer.answer(number)
            if not answered:
                await self._peer.submit([number])
            self._next()
            times.append((time.monotonic_ns() - start) / 1e6)
        return {
            "seconds": round(sum(times) / 1e3, 6),
            "p50_ms": round(statistics.median(times), 3),
            "p99_ms": round(sorted(times)[math.ceil(len(times) * 0.99) - 1], 3),
        }


def order(numbers: Sequence[int]) -> dict[str, Any]:
    """Whether jobs ran as submitted, and by how many places the worst of them was off."""
    if sorted(numbers) != list(range(len(numbers))):
        raise JobsDiffer("a job ran twice, so that the ledger does not tell when the last one ran")
    displaced = max(abs(place - number) for place, number in enumerate(numbers))
    return {"in_order": displaced == 0, "displaced": displaced}
