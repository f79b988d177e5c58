"""Python actions, and the three ways in which they are run."""

import asyncio
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from attune.worker.model import Outcome, Runtime
from tests.unit.worker.worlds import PATIENCE, World

INTERPRETER = (sys.executable, "-u")


class Mode(StrEnum):
    """`plain` is one interpreter start for each: what the two others are measured by."""

    PLAIN = "plain"
    ISOLATED = "isolated"
    REUSE = "reuse"


def fields_of(mode: Mode, **fields: Any) -> dict[str, Any]:
    """A variable that the interpreter reads before anything else asks for a start of its own."""
    own = {"PYTHONHASHSEED": "random"} if mode is Mode.PLAIN else {}
    return {
        "runtime": Runtime.PYTHON,
        "inline": False,
        "interpreter": INTERPRETER,
        "reuse": mode is Mode.REUSE,
        **fields,
        "env_vars": {**own, **fields.get("env_vars", {})},
    }


async def run_script(world: World, mode: Mode, text: str, **fields: Any) -> Outcome:
    """The file is written once: one that changes costs a process its reuse."""
    path = world.pack / "actions" / "script.py"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return await world.run(path.name, **fields_of(mode, **fields))


async def until(condition: Callable[[], bool]) -> None:
    """While the loop, on which the runs depend, goes on."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)
