"""Output is kept up to a bound, told live as it is kept, and never lost for a broken byte."""

import os
import tracemalloc
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Stream
from attune.worker.output import Output, unheard
from attune.worker.pipe import Pipe
from tests.unit.worker.worlds import World

MEGABYTE = 1024 * 1024


def told(chunks: list[bytes], limit: int) -> tuple[str, str]:
    heard: list[str] = []
    output = Output(Stream.STDOUT, lambda _stream, text: heard.append(text), limit)
    for chunk in chunks:
        output.feed(chunk)
    output.close()
    return "".join(heard), output.text()


@given(st.lists(st.binary(max_size=12)), st.integers(0, 40))
def test_what_is_told_live_is_what_is_kept(chunks: list[bytes], limit: int) -> None:
    live, kept = told(chunks, limit)
    assert live == kept
    whole = b"".join(chunks)
    if len(whole) <= limit:
        assert kept == whole.decode("utf-8", "replace").replace("\0", "\ufffd")
    else:
        assert kept.count("was cut") == 1


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers(1, 5)
)
def test_a_character_split_over_chunks_stays_whole(text: str, size: int) -> None:
    data = text.encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert told(chunks, len(data))[1] == text


def test_the_cut_leaves_no_half_of_a_character() -> None:
    _, kept = told(["aé".encode(), b"more"], 2)
    assert kept.startswith("a\n[")


def test_a_listener_that_fails_stops_nothing() -> None:
    calls: list[str] = []

    def fails(_stream: Stream, text: str) -> None:
        calls.append(text)
        raise RuntimeError("full")

    output = Output(Stream.STDOUT, fails, 100)
    output.feed(b"one")
    output.feed(b"two")
    assert output.text() == "onetwo"
    assert calls == ["one"]


def test_nobody_needs_to_listen() -> None:
    output = Output(Stream.STDOUT, unheard, 100)
    output.feed(b"one")
    assert output.text() == "one"


async def test_draining_takes_what_is_in_the_pipe_and_does_not_wait_for_more() -> None:
    reading, writing = os.pipe()
    output = Output(Stream.STDOUT, unheard, MEGABYTE)
    pipe = Pipe(os.fdopen(reading, "rb", 0), output)
    os.write(writing, b"x" * 60_000)
    pipe.drain()
    os.close(writing)
    assert output.text() == "x" * 60_000


async def test_draining_ends_also_when_somebody_writes_on() -> None:
    reading, writing = os.pipe()
    written = 0

    def writes_on(_stream: Stream, text: str) -> None:
        nonlocal written
        written += os.write(writing, text.encode())

    pipe = Pipe(os.fdopen(reading, "rb", 0), Output(Stream.STDOUT, writes_on, 100 * MEGABYTE))
    os.write(writing, b"x" * 1000)
    pipe.drain()
    os.close(writing)
    assert written <= MEGABYTE


async def test_f25_endless_output_takes_no_memory_and_does_not_hold_the_process(
    world: World,
) -> None:
    tracemalloc.start()
    try:
        outcome = await world.run(
            "yes | head -c 200000000; yes | head -c 20000000 >&2; echo end > end"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome.status is ExecutionStatus.COMPLETED
    assert (world.pack / "end").read_text() == "end\n"
    for text in (outcome.result.stdout, outcome.result.stderr):
        assert 10 * MEGABYTE < len(text) < 10 * MEGABYTE + 200
        assert text.rstrip().endswith("10 MB are kept.]")
    assert peak < 80 * MEGABYTE


async def test_five_megabytes_are_kept_whole(world: World) -> None:
    outcome = await world.run("yes | head -c 5000000")
    assert outcome.result.stdout == "y\n" * 2_500_000
    assert world.ear.text[Stream.STDOUT] == outcome.result.stdout


async def test_f25_bytes_that_are_not_text_are_replaced(world: World) -> None:
    outcome = await world.run(r"printf 'a\xff\xfeb\000c\xc3'; printf '\xc3' >&2; printf '\xa9' >&2")
    assert outcome.result.stdout == "a\ufffd\ufffdb\ufffdc\ufffd"
    assert outcome.result.stderr == "é"
    assert world.ear.text == {Stream.STDOUT: outcome.result.stdout, Stream.STDERR: "é"}


async def test_the_bound_is_a_setting(tmp_path: Path) -> None:
    world = World(tmp_path, kept_bytes=MEGABYTE)
    outcome = await world.run("yes | head -c 2000000")
    assert outcome.result.stdout.endswith("[The rest of this output was cut: 1 MB are kept.]\n")
