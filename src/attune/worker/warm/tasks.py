"""What a process that stays is told of a run: all that differs from the one before."""

import os
from typing import Any, NamedTuple

from attune.worker.delivery import memory_file
from attune.worker.environment import EXECUTION
from attune.worker.warm.pool import Key
from attune.worker.warm.server import Unfit
from attune.worker.warm.wire import LONGEST, encoded


class Told(NamedTuple):
    """`stdin` is a descriptor, for what the message has no room for; whoever has it told closes it."""

    message: bytes
    stdin: int | None

    def close(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)


class Task(NamedTuple):
    key: Key
    environment: dict[str, str]
    stdin: bytes

    def request(self) -> dict[str, Any]:
        """For a process that is to begin with this one."""
        return {
            "arguments": (self.key.script,),
            "environment": self.environment,
            "folder": self.key.folder,
            "rlimits": (),
            "marks": (EXECUTION,),
        }

    def told(self) -> Told:
        """Raise Unfit for an environment that is too large for a message."""
        message = encoded((self.environment, self.stdin))
        if len(message) <= LONGEST:
            return Told(message, None)
        message = encoded((self.environment, None))
        if len(message) > LONGEST:
            raise Unfit("its environment is too large for a message")
        return Told(message, memory_file(self.stdin))
