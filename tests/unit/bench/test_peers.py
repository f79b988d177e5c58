"""What is ours of the peers' benchmark: the ledger, the order, the environments and the runner."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from bench.peers import contest as contests
from bench.peers.contest import Contest, Ledger
from bench.peers.environment import Environment
from bench.peers.heat import JobsDiffer, order
from bench.peers.run import (
    PEERS,
    Peer,
    PeerFailed,
    PeerUnsupported,
    find_peer,
    read_result,
    run_command,
)
from harness.waiting import wait_until

ROOT = Path(__file__).parents[3]


def result(**changes: object) -> dict[str, object]:
    return {
        "peer": "huey",
        "version": "3.5.4",
        "variant": "plain",
        "case": "free",
        "count": 100,
        "seconds": 0.5,
        "per_second": 200.0,
        "p50_ms": None,
        "p99_ms": None,
        "in_order": True,
        "displaced": 0,
        "results": True,
        "note": "",
        **changes,
    }


@pytest.fixture
def in_contest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contest:
    made = Contest("free", 3, {}, "plain", str(tmp_path), str(tmp_path / "ledger"))
    monkeypatch.setattr(contests, "contest", lambda: made)
    contests._descriptor.cache_clear()
    return made


@pytest.mark.parametrize("pipe", [False, True])
def test_a_job_that_ran_is_read_back_with_its_number_and_process(
    in_contest: Contest, pipe: bool
) -> None:
    ledger = Ledger(in_contest.ledger, pipe=pipe)
    for number in (7, 8):
        assert contests.note(number) == number
    found = [ledger.next(1.0), ledger.next(1.0)] if pipe else ledger.entries()
    ledger.close()
    assert [entry.number for entry in found if entry] == [7, 8]
    assert {entry.pid for entry in found if entry} == {os.getpid()}


def test_a_ledger_in_a_file_counts_what_was_written_since(in_contest: Contest) -> None:
    ledger = Ledger(in_contest.ledger, pipe=False)
    contests.note(0)
    assert (len(ledger), len(ledger.entries())) == (1, 1)
    contests.note(1)
    assert (len(ledger), len(ledger.entries())) == (2, 2)
    ledger.close()


def test_a_pipe_on_which_nothing_comes_is_left_in_time(in_contest: Contest) -> None:
    ledger = Ledger(in_contest.ledger, pipe=True)
    assert ledger.next(0.0) is None
    ledger.close()


def test_order_tells_how_far_the_worst_was_off() -> None:
    assert order([0, 1, 2]) == {"in_order": True, "displaced": 0}
    assert order([2, 0, 1, 3]) == {"in_order": False, "displaced": 2}


def test_a_job_that_ran_twice_spoils_the_measurement() -> None:
    with pytest.raises(JobsDiffer):
        order([0, 1, 1])


@pytest.mark.parametrize(("case", "limit"), [("free", None), ("limit10", 10), ("limit1", 1)])
def test_arguments_make_a_contest(case: str, limit: int | None) -> None:
    made = Contest.from_arguments(["--case", case, "--count", "5", "--servers", '{"redis": "r"}'])
    assert (made.limit, made.count, made.variant) == (limit, 5, "plain")
    assert made.servers == {"redis": "r"}
    Path(made.scratch).rmdir()
    Path(made.ledger).parent.rmdir()


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--count", "0", "at least 1"),
        ("--servers", "[]", "object of URLs"),
        ("--case", "x", "free"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_rule(
    option: str, value: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--case": "free", "--count": "1", "--servers": "{}", option: value}
    with pytest.raises(SystemExit):
        Contest.from_arguments([part for pair in given.items() for part in pair])
    told = capsys.readouterr().err
    assert option in told
    assert rule in told


def test_an_environment_is_ready_until_its_lock_changes(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "made", tmp_path / "some.lock")
    environment.lock.write_text("huey==3.5.4\n")
    assert not environment.is_ready()
    environment.python.parent.mkdir(parents=True)
    environment.python.touch()
    environment.seal()
    assert environment.is_ready()
    environment.lock.write_text("huey==3.5.5\n")
    assert not environment.is_ready()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.title)
def test_a_peer_has_a_module_and_a_locked_version(peer: Peer) -> None:
    assert (ROOT / "bench" / "peers" / f"{peer.name}.py").exists()
    lines = peer.environment.lock.read_text().splitlines()
    assert any(line.startswith(f"{peer.name}==") for line in lines)


def test_a_lock_file_names_hashes_and_no_index() -> None:
    for peer in PEERS:
        text = peer.environment.lock.read_text()
        assert "--hash=sha256:" in text
        assert "index-url" not in text
        assert "://" not in text


def test_an_unknown_variant_is_refused_with_those_there_are() -> None:
    with pytest.raises(LookupError, match="celery, late"):
        find_peer("celery", "early")


def test_the_last_line_is_the_result() -> None:
    found = read_result("a warning of some library\n" + json.dumps(result(per_second=12.5)) + "\n")
    assert (found.peer, found.per_second, found.in_order) == ("huey", 12.5, True)


def test_what_a_library_lacks_is_told_in_its_words() -> None:
    with pytest.raises(PeerUnsupported, match="no such thing"):
        read_result('{"unsupported": "there is no such thing"}\n')


@pytest.mark.parametrize("output", ["", "Traceback", json.dumps(result(count="many"))])
def test_an_answer_that_is_no_result_is_a_failure(output: str) -> None:
    with pytest.raises(PeerFailed):
        read_result(output)


async def test_a_failed_peer_tells_the_end_of_its_errors() -> None:
    program = "import sys; sys.exit('no such broker')"
    with pytest.raises(PeerFailed, match=r"exited with 1:\nno such broker"):
        await run_command([sys.executable, "-c", program], timeout=30)


async def test_a_peer_that_hangs_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    program = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(started)!r}).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(PeerFailed, match=r"did not end within 2 s"):
        await run_command([sys.executable, "-c", program], timeout=2)
    child = Path("/proc") / started.read_text()
    await asyncio.to_thread(wait_until, lambda: not _lives(child), what="the child has ended")


def _lives(process: Path) -> bool:
    """A killed orphan stays listed until init has taken note of it."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
