"""A span has its own time: not that of what it called, nor that of what others did while it waited."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from bench.cost.spans import LOOP, STORE, Span

SLICE = 0.02  # seconds of work that are much more than the clock's grain


def busy(seconds: float = SLICE) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def spans() -> SimpleNamespace:
    found: dict[str, Span] = {}
    return SimpleNamespace(
        found=found, new=lambda name: Span(name, lambda s: found.update({s.name: s}))
    )


async def test_an_outer_span_does_not_have_the_time_of_an_inner_one() -> None:
    book = spans()

    async def inner() -> None:
        busy(3 * SLICE)

    async def outer() -> None:
        busy()
        await book.new("inner").drive(inner())

    await book.new("outer").drive(outer())

    assert book.found["inner"].cpu >= 3 * SLICE
    assert SLICE <= book.found["outer"].cpu < 3 * SLICE
    assert book.found["inner"].parent is book.found["outer"]


async def test_what_others_do_on_the_loop_meanwhile_is_waiting_and_not_work() -> None:
    book = spans()
    turn = asyncio.Event()

    async def waiting() -> None:
        await turn.wait()

    async def other() -> None:
        busy(2 * SLICE)
        turn.set()

    await asyncio.gather(book.new("waiting").drive(waiting()), other())

    assert book.found["waiting"].cpu < SLICE
    assert book.found["waiting"].waited >= SLICE


async def test_an_error_reaches_whoever_awaits_and_ends_the_span() -> None:
    book = spans()

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("as the work does")

    with pytest.raises(ValueError, match="as the work does"):
        await book.new("failing").drive(failing())
    assert "failing" in book.found


async def test_a_cancellation_goes_through_to_the_work() -> None:
    book, told = spans(), []

    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    task = asyncio.create_task(book.new("patient").drive(patient()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["cancelled"]


def test_a_span_tells_whether_the_loops_thread_had_it_or_another() -> None:
    book = spans()
    book.new("here").call(busy, 0)
    thread = threading.Thread(target=lambda: book.new("there").call(busy, 0))
    thread.start()
    thread.join()
    assert (book.found["here"].place, book.found["there"].place) == (LOOP, STORE)
