"""Waiting until a cordoned worker has nothing left to do.

A drain ends with its last execution, and nothing but the worker's load tells of that: it is looked at again and
again, at growing distances.
"""

import time
from collections.abc import Callable
from typing import Final

from attune.client.calls import Call
from attune.client.errors import NotFinished
from attune.client.session import Session
from attune.client.worker_models import Worker, WorkerLoad

_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 2.0
_GROWTH: Final = 1.5


async def until_drained(
    session: Session,
    look: Call[Worker],
    *,
    timeout: float | None,
    on_change: Callable[[Worker], None],
) -> Worker:
    """`timeout` is in seconds; None waits for ever. `on_change` is told of the first look and of every other load."""
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    delay = _FIRST_DELAY
    known: WorkerLoad | None = None
    while True:
        worker = await session.run(look)
        if worker.load != known:
            known = worker.load
            on_change(worker)
        if worker.load.total_active == 0 and worker.cordoned:
            return worker
        left = deadline - time.monotonic()
        if left <= 0 or not worker.cordoned:
            raise _not_drained(worker, timeout)
        await session.transport.sleep(min(delay, left))
        delay = min(delay * _GROWTH, _LONGEST_DELAY)


def _not_drained(worker: Worker, timeout: float | None) -> NotFinished:
    count = worker.load.total_active
    if not worker.cordoned:
        sentence = f"Worker {worker.name} was uncordoned before it had nothing left to do."
    else:
        things = "execution" if count == 1 else "executions"
        sentence = f"Worker {worker.name} still has {count} {things} after {timeout:g} s. It stays cordoned."
    return NotFinished(sentence, worker=worker.id, total_active=count, cordoned=worker.cordoned)
