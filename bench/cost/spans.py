"""Times pieces of work that nest, wait and move between threads, each without what it called.

A coroutine is timed slice by slice, so what others do on the loop while it waits is not its own. On SQLite a whole
step is one slice in the store's thread.
"""

import threading
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Final

Finish = Callable[["Span"], None]

LOOP: Final = "loop"
STORE: Final = "store"

_here = threading.local()


def _stack() -> "list[Span]":
    stack: list[Span] | None = getattr(_here, "stack", None)
    if stack is None:
        stack = _here.stack = []
    return stack


@dataclass(slots=True, eq=False)
class Span:
    """Seconds: `cpu` of its thread and `wall`, both without those of spans within it."""

    name: str
    finish: Finish
    parent: "Span | None" = None
    cpu: float = 0.0
    wall: float = 0.0
    place: str = LOOP
    _began: float = 0.0
    _slice_began: float = 0.0
    _slice_below: float = 0.0

    @property
    def waited(self) -> float:
        """What awaits several at once can have less than nothing left of its own; that is no waiting."""
        return max(self.wall - self.cpu, 0.0)

    def begin(self) -> None:
        stack = _stack()
        self.parent = stack[-1] if stack else None
        self.place = LOOP if threading.current_thread() is threading.main_thread() else STORE
        self._began = time.perf_counter()

    def end(self) -> None:
        spent = time.perf_counter() - self._began
        self.wall += spent
        if self.parent is not None:
            self.parent.wall -= spent
        self.finish(self)

    def enter(self) -> None:
        _stack().append(self)
        self._slice_below = 0.0
        self._slice_began = time.thread_time()

    def leave(self) -> None:
        spent = time.thread_time() - self._slice_began
        stack = _stack()
        stack.pop()
        self.cpu += spent - self._slice_below
        if stack:
            stack[-1]._slice_below += spent

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """For a function that does not await."""
        self.begin()
        self.enter()
        try:
            return function(*args, **kwargs)
        finally:
            self.leave()
            self.end()

    async def drive(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await _Driven(self, work)


class _Driven:
    def __init__(self, span: Span, work: Coroutine[Any, Any, Any]) -> None:
        self._span = span
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        self._span.begin()
        try:
            return (yield from self._slices())
        finally:
            self._span.end()

    def _slices(self) -> Generator[Any, Any, Any]:
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            self._span.enter()
            try:
                awaited = self._work.send(sent) if thrown is None else self._work.throw(thrown)
            except StopIteration as done:
                return done.value
            finally:
                self._span.leave()
            sent = thrown = None
            try:
                sent = yield awaited
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, belongs to the work
                thrown = error
