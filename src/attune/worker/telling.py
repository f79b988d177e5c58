"""Signals to many processes, each of them once, and the wait for their ends."""

import asyncio
import signal
from collections.abc import Collection
from typing import Final

from attune.worker.pidfd import Watched
from attune.worker.proc import Identity, Process, same

# A run may have more processes than this one may have descriptors.
_MOST_WATCHED: Final = 64


class Told:
    """Who of a run has had the signal. The end of some is waited for; the others are looked at again then."""

    def __init__(self, number: signal.Signals) -> None:
        self.identities: set[Identity] = set()
        self._number = number
        self._watched: dict[Identity, Watched] = {}

    def tell(self, living: Collection[Process]) -> list[asyncio.Future[None]]:
        there = {process.identity for process in living}
        for identity in self._watched.keys() - there:
            self._watched.pop(identity).close()
        for process in living:
            self._tell(process)
        return [watched.ended for watched in self._watched.values()]

    def close(self) -> None:
        for watched in self._watched.values():
            watched.close()

    def _tell(self, process: Process) -> None:
        is_new = process.identity not in self.identities
        has_room = len(self._watched) < _MOST_WATCHED
        if process.identity in self._watched or not (is_new or has_room):
            return
        try:
            watched = Watched(process.pid)
        except ProcessLookupError:
            return
        is_it = same(process.identity)
        if is_new and is_it:
            self.identities.add(process.identity)
            watched.signal(self._number)
            if process.stopped:
                watched.signal(signal.SIGCONT)
        if has_room and is_it:
            self._watched[process.identity] = watched
        else:
            watched.close()
