"""Many requests, one commit: the first leaves at once, those that come meanwhile leave together next."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Flush = Callable[[list[T]], Awaitable[Sequence[R | Exception]]]


class Batcher(Generic[T, R]):
    """`flush` answers each item in its place, with a result or with the error that is this item's alone.

    An error that it raises is everybody's. At most `limit` items go at once; one flush runs at a time, so items
    are taken in the order in which they came.
    """

    def __init__(self, name: str, flush: Flush[T, R], *, limit: int = 500) -> None:
        self.name = name
        self._flush = flush
        self._limit = limit
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is under way: what is done now overtakes nobody."""
        return self._task is None

    async def submit(self, item: T) -> R:
        """Return when the batch that holds the item is done."""
        return await self.put(item)

    def put(self, item: T) -> "asyncio.Future[R]":
        """The same for who does not wait: the answer to come."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self.name)
        return answer

    async def start(self) -> None:
        """It starts by itself with the first item."""

    async def stop(self) -> None:
        """Return when everything submitted has its answer."""
        while self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            while self._waiting:
                count = min(len(self._waiting), self._limit)
                await self._answer([self._waiting.popleft() for _ in range(count)])
        finally:
            self._task = None

    async def _answer(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        answers = [answer for _, answer in batch]
        try:
            results = await self._flush([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - whoever submitted gets it, whatever it is
            _settle(answers, [error] * len(batch))
        else:
            _settle(answers, results)


def _settle(answers: list["asyncio.Future[R]"], results: Sequence[R | Exception]) -> None:
    for answer, result in zip(answers, results, strict=True):
        if answer.done():
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)
