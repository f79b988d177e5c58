"""The one way in which peers are measured, on a peer of our own whose queue is a pipe."""

import sys
from pathlib import Path

import pytest

from bench.peers.run import PeerFailed, PeerResult, PeerUnsupported, read_result, run_command

FAKE = """
import os
import struct
import sys
from pathlib import Path

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant
from bench.peers.heat import main

QUEUE = Path(contest().scratch) / "queue"
JOB = struct.Struct("<q")


def work():
    if contest().variant == "broken":
        sys.exit("the worker cannot reach its queue")
    descriptor = os.open(QUEUE, os.O_RDWR)
    while True:
        note(*JOB.unpack(os.read(descriptor, JOB.size)))


class Fake(Contestant):
    distribution = "msgspec"
    unsupported = {"limit1": "a pipe has no limit"}
    results = False
    processes = 1

    def workers(self):
        return [[sys.executable, __file__, "--work"]]

    async def open(self):
        os.mkfifo(QUEUE)
        self.queue = os.open(QUEUE, os.O_RDWR)

    async def submit(self, numbers):
        numbers = list(numbers)
        if contest().variant == "backwards":
            numbers.reverse()
        for number in numbers:
            os.write(self.queue, JOB.pack(number))

    async def close(self):
        os.close(self.queue)


if __name__ == "__main__":
    work() if "--work" in sys.argv else main(Fake)
"""


async def take_part(folder: Path, case: str, count: int, variant: str = "plain") -> PeerResult:
    program = folder / "fake.py"
    program.write_text(FAKE)
    command = [sys.executable, str(program), "--case", case, "--count", str(count)]
    return read_result(
        await run_command([*command, "--servers", "{}", "--variant", variant], timeout=60)
    )


async def test_jobs_are_counted_until_the_last_has_run_and_their_order_is_told(
    tmp_path: Path,
) -> None:
    found = await take_part(tmp_path, "free", 300)
    assert (found.peer, found.case, found.count) == ("msgspec", "free", 300)
    assert (found.in_order, found.displaced) == (True, 0)
    assert found.per_second == pytest.approx(300 / found.seconds, rel=0.01)
    assert found.p50_ms is None


async def test_a_peer_that_runs_the_last_first_is_found_out(tmp_path: Path) -> None:
    found = await take_part(tmp_path, "limit10", 50, "backwards")
    assert (found.in_order, found.displaced) == (False, 49)


async def test_latency_is_told_as_percentiles_of_single_jobs(tmp_path: Path) -> None:
    found = await take_part(tmp_path, "latency", 20)
    assert found.p50_ms is not None
    assert found.p99_ms is not None
    assert 0 < found.p50_ms <= found.p99_ms
    assert found.in_order is None


async def test_a_case_that_a_library_lacks_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(PeerUnsupported, match="a pipe has no limit"):
        await take_part(tmp_path, "limit1", 10)


@pytest.mark.parametrize("case", ["free", "latency"])
async def test_workers_that_end_are_a_failure_with_what_they_wrote(
    tmp_path: Path, case: str
) -> None:
    with pytest.raises(PeerFailed, match="the worker cannot reach its queue"):
        await take_part(tmp_path, case, 10, "broken")
