"""Executions that joined in a transaction and found a slot at once: written last, as what they have become by then."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution
from attune.pipeline.queues.model import Entry, State
from attune.store import schema
from attune.store.database import Tx


class Arrivals:
    """One that a worker gets in the same transaction is written once. `entries` have no rows until `save`."""

    def __init__(self) -> None:
        self.entries: dict[ExecutionId, Entry] = {}
        self._unwritten: dict[ExecutionId, Execution] = {}

    def add(self, entries: Iterable[Entry], unwritten: Iterable[Execution]) -> None:
        """`unwritten` are those of the executions that have no rows either."""
        self.entries |= {one.execution: one for one in entries}
        self._unwritten |= {one.id: one for one in unwritten}

    def hand(
        self, workers: Mapping[ExecutionId, WorkerId], lease: datetime, now: datetime
    ) -> list[Execution]:
        """These of them are their workers' now; the executions that will be written so."""
        for one in workers.keys() & self.entries.keys():
            self.entries[one] = msgspec.structs.replace(
                self.entries[one],
                state=State.HANDED,
                reason=None,
                worker=workers[one],
                lease_expires_at=lease,
            )
        handed = [one for one in workers if one in self._unwritten]
        for one in handed:
            self._unwritten[one] = msgspec.structs.replace(
                self._unwritten[one],
                status=ExecutionStatus.SCHEDULED,
                worker=workers[one],
                updated=now,
            )
        return [self._unwritten[one] for one in handed]

    async def save(self, tx: Tx) -> None:
        await tx.insert_later(schema.execution, [*self._unwritten.values()])
        await tx.insert_later(schema.entry, [*self.entries.values()])
