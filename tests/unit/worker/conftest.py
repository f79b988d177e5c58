import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.worker.worlds import World, survivors


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    yield World(tmp_path)
    for runner in World.runners:
        await runner.close()
    World.runners.clear()


@pytest.fixture(autouse=True)
def no_process_outlives_its_test() -> Iterator[None]:
    """Also not when the test fails, which is when the product has left some."""
    yield
    for execution_id in World.execution_ids:
        for pid in survivors(execution_id):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    World.execution_ids.clear()
