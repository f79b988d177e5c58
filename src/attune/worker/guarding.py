"""What the guardian's process does: wait for the worker's end, then end all that the worker has left running.

The worker tells of its runs over a pipe, a line each: `+pid started` and `-pid`. Nothing but the standard library
and modules like this one, so that it starts at once and stays small.
"""

import os
import select
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

from attune.worker.badges import badge, badges, take_off
from attune.worker.proc import Identity, Process, all_pids, has_memory, look, same

_MOST_WAITED_FOR: Final = 256
_MOMENT_MS: Final = 1000
_CHUNK: Final = 64 * 1024


def main(worker: Identity, worker_badge: int) -> None:
    _be_nobody()
    runs = told_runs(_lines(0))
    if not runs and same(worker) and has_memory(worker.pid):
        # The worker lives on and has no use for a guardian any more.
        return
    _wait_for_end(worker)
    guarded = Guarded(runs, worker_badge)
    while living := guarded.living():
        guarded.leave(_end(living))


def told_runs(lines: Iterator[str]) -> set[Identity]:
    """Those under way when the last line was told; half a line at the end is none."""
    runs: dict[int, Identity] = {}
    for line in lines:
        pid, *started = map(int, line[1:].split())
        if line[0] == "+":
            runs[pid] = Identity(pid, *started)
        else:
            runs.pop(pid, None)
    return set(runs.values())


class Guarded:
    """What is to end: the runs under way, and what else carries the worker's badge.

    A run that has ended by itself is over: a daemon that it left on purpose stays, as it does when no worker dies.
    A badge of 0 is none.
    """

    def __init__(self, runs: Collection[Identity], worker_badge: int) -> None:
        self._runs = {run.pid: run for run in runs}
        self._run_badges = {badge(run) for run in runs}
        self._worker_badge = worker_badge
        # This process was started by the worker, too, and for no run.
        self._of_no_run = badges(os.getpid()).run
        self._left: set[Identity] = set()

    def leave(self, processes: Collection[Identity]) -> None:
        """They have become another user's: who may not end them need not wait for them."""
        self._left.update(processes)

    def living(self) -> list[Process]:
        """With all that is below them now; a number that is another process's by now counts for nothing."""
        there = {process.pid: process for process in filter(None, map(look, all_pids()))}
        there.pop(os.getpid(), None)
        found = {pid for pid, process in there.items() if self._has(process, there)}
        new = found
        while new:
            new = {pid for pid, process in there.items() if process.parent in new} - found
            found |= new
        living = [there[pid] for pid in found if there[pid].lives]
        return [process for process in living if process.identity not in self._left]

    def _has(self, process: Process, there: dict[int, Process]) -> bool:
        for number in (process.pid, process.group, process.session):
            run = self._runs.get(number)
            if run is not None and (number not in there or there[number].identity == run):
                return True
        theirs = badges(process.pid)
        if theirs.run in self._run_badges:
            return True
        return theirs == (self._worker_badge, self._of_no_run)


def _be_nobody() -> None:
    """Signals that are meant for the worker do not end its guardian, and nothing of the worker's stays open."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    take_off()


def _lines(descriptor: int) -> Iterator[str]:
    rest = b""
    while piece := os.read(descriptor, _CHUNK):
        *whole, rest = (rest + piece).split(b"\n")
        yield from map(bytes.decode, whole)


def _wait_for_end(worker: Identity) -> None:
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(worker.pid)
        if same(worker):
            select.select([descriptor], [], [])
        os.close(descriptor)


def _end(processes: Collection[Process]) -> list[Identity]:
    """Deal KILL to all and wait for a moment until one is gone; those to whom it may not be dealt."""
    held: list[int] = []
    refused = []
    for process in processes:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        if not _kill(descriptor, process.identity):
            refused.append(process.identity)
        if len(held) < _MOST_WAITED_FOR:
            held.append(descriptor)
        else:
            os.close(descriptor)
    poll = select.poll()
    for descriptor in held:
        poll.register(descriptor, select.POLLIN)
    poll.poll(_MOMENT_MS)
    for descriptor in held:
        os.close(descriptor)
    return refused


def _kill(descriptor: int, identity: Identity) -> bool:
    """Whether it may be dealt; one that is gone, or another by now, is spared."""
    try:
        if same(identity):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True
