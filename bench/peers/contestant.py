"""The one shape of a peer. Runs on the peers' own interpreters."""

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar

from bench.peers.contest import contest

POLL = 0.002


class Contestant(ABC):
    """A peer in one contest. Where a method is not for a library, the default does nothing."""

    distribution: ClassVar[str]  # also the name of the peer and of its module
    unsupported: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self.contest = contest()

    @property
    @abstractmethod
    def results(self) -> bool:
        """Whether what a job returned can be asked for afterwards."""

    @property
    def remark(self) -> str:
        """What a reader of the figures must know."""
        return ""

    @abstractmethod
    def workers(self) -> list[list[str]]:
        """The commands that start the workers, as the library's documentation starts them."""

    @property
    def processes(self) -> int:
        """In how many processes jobs run; all of them have run one before the clock starts."""
        return 2

    @abstractmethod
    async def open(self) -> None:
        """Make schema, queues and connections."""

    @abstractmethod
    async def submit(self, numbers: Sequence[int]) -> None:
        """Hand in one job for each number, in this order, by the library's fastest safe way."""

    async def settle(self) -> bool:
        """Wait until the library itself counts every submitted job as finished; False where it cannot tell."""
        return False

    async def answer(self, number: int) -> bool:
        """Submit one job and wait for its result by the library's own means; False where there is none."""
        del number
        return False

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


def program(module: str, *arguments: str) -> list[str]:
    """A command of a library, with the interpreter that runs this."""
    return [sys.executable, "-m", module, *arguments]


async def until(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Ask the library's books again and again; True, so that it can end a settle()."""
    while not await condition():  # noqa: ASYNC110 - what is waited for is in another process
        await asyncio.sleep(POLL)
    return True
