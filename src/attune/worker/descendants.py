"""Every process that a run brings about, wherever it hides, and how all of them end.

A run's first process leads a session of its own. What it starts may leave that session or lose its parent;
as this process is a "child subreaper", such an orphan becomes our child instead of init's. So the processes
of a run are the tree below its first one, and the orphans that have its session or its badge or were started
with its execution id, with the trees below them. The first one may also be the child of another process of ours,
a warm interpreter, that keeps its body: then it is not ours to reap, and its orphans come to us all the same.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from attune.kernel.clock import Clock
from attune.kernel.errors import NotConfigured
from attune.worker.badges import badge, badges
from attune.worker.proc import Identity, Process, adopted, children, has_variable, look, same
from attune.worker.telling import Told

_PR_SET_CHILD_SUBREAPER: Final = 36
# Whoever in this process started a child waits for it at once; a body that lies longer is nobody's.
_UNCLAIMED_SECONDS: Final = 10.0
_SECONDS_BETWEEN_SWEEPS: Final = 1.0


class Lineage:
    """One run's processes. `mark` is the NAME=value that the first one was started with.

    What was once seen to belong to the run does so for good, also when it loses its parent later. The first one
    is looked at now, while its number is certainly its own.
    """

    def __init__(self, root: int, mark: bytes) -> None:
        self.root = root
        self.mark = mark
        process = look(root)
        self.identity = process.identity if process else Identity(root, 0)
        self.seen: set[Identity] = set()
        self.sessions = {root}

    def see(self, processes: Collection[Process]) -> None:
        self.seen = {process.identity for process in processes}
        self.sessions.update(process.session for process in processes)

    def has(self, orphan: Process) -> bool:
        """By its session, or by its badge or mark, which one that has ended does not show."""
        if orphan.identity.started < self.identity.started:
            return False
        if orphan.session in self.sessions or orphan.group == self.root:
            return True
        own = badges(orphan.pid).run == badge(self.identity)
        return own or has_variable(orphan.pid, self.mark)


class Reach(Enum):
    """A daemon that left the session on purpose outlives a run that ended well; nothing outlives a kill."""

    SESSION = "session"
    EVERYTHING = "everything"


class Descendants:
    """One for the whole process: it takes in the orphans of all runs."""

    def __init__(self, clock: Clock) -> None:
        if not Path("/proc/self/task", str(os.getpid()), "children").exists():
            raise NotConfigured("A worker needs a Linux kernel that lists children in /proc.")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot become the reaper of orphans")
        self._clock = clock
        self._own_session = os.getsid(0)
        self._roots: set[int] = set()
        self._bodies: dict[Identity, float] = {}
        self._swept_at: float | None = None

    def add(self, root: int) -> None:
        """A first process: whoever started it reaps it, and only after `remove`."""
        self._roots.add(root)

    def remove(self, root: int) -> None:
        self._roots.discard(root)

    async def end(
        self, lineage: Lineage, number: signal.Signals, patience: float, reach: Reach
    ) -> bool:
        """Signal each process of the run once, later ones too; whether all are gone within `patience` seconds."""
        if number is signal.SIGKILL:
            _kill_group(lineage.root)
        living = self._living(lineage, reach)
        if not living:
            return True
        timer = asyncio.ensure_future(self._clock.sleep(patience))
        told = Told(number)
        try:
            while living:
                if timer.done():
                    return False
                if waits := told.tell(living):
                    await asyncio.wait({timer, *waits}, return_when=asyncio.FIRST_COMPLETED)
                if number is signal.SIGKILL:
                    _kill_group(lineage.root)
                living = self._living(lineage, reach)
            return True
        finally:
            timer.cancel()
            told.close()
            self._reap(told.identities)

    def count(self, lineage: Lineage) -> int:
        """How many processes the run has now, wherever they are."""
        return len(self._living(lineage, Reach.EVERYTHING))

    def kill_now(self, lineage: Lineage) -> None:
        """For a run that nobody waits for any more. Who has been dealt KILL starts nothing: no news, all are hit."""
        hit: set[Identity] = set()
        _kill_group(lineage.root)
        while news := [
            process
            for process in self._living(lineage, Reach.EVERYTHING)
            if process.identity not in hit
        ]:
            for process in news:
                hit.add(process.identity)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)

    def sweep(self) -> None:
        """Reap the orphans that ended by themselves; without it they would pile up as long as we live."""
        now = self._clock.monotonic()
        if self._swept_at is not None and now - self._swept_at < _SECONDS_BETWEEN_SWEEPS:
            return
        self._swept_at = now
        bodies = {
            process.identity
            for process in map(look, self._orphans())
            if process and not process.lives and process.session != self._own_session
        }
        self._bodies = {identity: self._bodies.get(identity, now) for identity in bodies}
        self._reap(
            identity
            for identity, since in self._bodies.items()
            if now - since >= _UNCLAIMED_SECONDS
        )

    def _living(self, lineage: Lineage, reach: Reach) -> list[Process]:
        """Orphans are looked for last, until there are no new ones: a parent may end while we look.

        After a run that left nothing this costs a look at the first process's body and one at our own children.
        """
        found: dict[int, Process] = {}
        pending = [*filter(None, map(_still, {lineage.identity, *lineage.seen}))]
        while True:
            _walk(pending, found)
            pending = [each for each in self._orphans_of(lineage) if each.pid not in found]
            if not pending:
                break
        lineage.see(found.values())
        living = [process for process in found.values() if process.lives]
        if reach is Reach.EVERYTHING:
            return living
        return [process for process in living if _in_session(process, lineage.root)]

    def _orphans(self) -> set[int]:
        return adopted(os.getpid()) - self._roots

    def _orphans_of(self, lineage: Lineage) -> list[Process]:
        """The living ones; bodies are reaped on the way."""
        found = []
        for process in filter(None, map(look, self._orphans())):
            if not lineage.has(process):
                continue
            if process.lives:
                found.append(process)
            else:
                self._reap([process.identity])
        return found

    def _reap(self, bodies: Iterable[Identity]) -> None:
        """Only of children of ours: another's body is that one's, and a number that was given anew is nobody's."""
        for identity in bodies:
            if identity.pid not in self._roots and same(identity):
                with suppress(ChildProcessError):
                    os.waitpid(identity.pid, os.WNOHANG)


def _walk(pending: list[Process], found: dict[int, Process]) -> None:
    """Add these processes and the trees below them to what was found."""
    while pending:
        process = pending.pop()
        if process.pid not in found:
            found[process.pid] = process
            if process.lives:
                pending.extend(filter(None, map(look, children(process.pid))))


def _still(identity: Identity) -> Process | None:
    process = look(identity.pid)
    return process if process and process.identity == identity else None


def _in_session(process: Process, root: int) -> bool:
    return root in (process.session, process.group)


def _kill_group(root: int) -> None:
    """All at once, so that none can start another meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(root, signal.SIGKILL)
