"""What a worker is handed: everything that it needs to begin, but for the definition, which it may know."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self

import msgspec

from attune.kernel.ids import ActionDefinitionId, ActionId, ExecutionId, IdentityId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution
from attune.pipeline.outbox import Moved
from attune.pipeline.queues.model import Entry
from attune.store.database import Answer

_LONGEST_MARGIN: Final = timedelta(seconds=1)


class HandOff(msgspec.Struct, frozen=True, kw_only=True):
    execution: ExecutionId
    lane: LaneId
    attempt: int
    definition: ActionDefinitionId
    action: ActionId | None = None
    action_ref: str
    status: ExecutionStatus
    config: dict[str, Any]
    env_vars: dict[str, str] | None
    rule_ref: str | None
    trigger_ref: str | None
    timeout_seconds: float | None
    executor: IdentityId | None
    permission_set_refs: list[str] | None
    lease_expires_at: datetime | None = None

    def may_begin(self, lease: timedelta, now: datetime) -> bool:
        """Not in the last tenth of its lease, or the last second: whoever ends what was not begun must find it begun.

        `lease` is how long leases are.
        """
        if self.lease_expires_at is None:
            return True
        return now < self.lease_expires_at - min(lease / 10, _LONGEST_MARGIN)

    def since(self, lease: timedelta) -> datetime | None:
        """When it was handed over."""
        return None if self.lease_expires_at is None else self.lease_expires_at - lease

    def __repr__(self) -> str:
        return f"HandOff(execution={self.execution}, attempt={self.attempt})"


@dataclass(frozen=True, slots=True)
class HandOver:
    """Entries that were given to workers in one transaction. What the workers need of them is known after the commit."""

    entries: Sequence[Entry] = ()
    lease: datetime | None = None
    scheduled: Sequence[Answer["Scheduled"]] = ()

    @property
    def executions(self) -> list[ExecutionId]:
        return [one.execution for one in self.entries]

    def hand_offs(self) -> list[HandOff]:
        """In their order."""
        rows = {one.id: one for answer in self.scheduled for one in answer.rows}
        return [
            rows[one.execution].hand_off(one, self.lease)
            for one in self.entries
            if one.execution in rows
        ]


class Scheduled(Moved, frozen=True):
    """An execution whose row was written as a worker's, with what the worker needs of it."""

    config: dict[str, Any]
    env_vars: dict[str, str] | None
    rule_ref: str | None
    trigger_ref: str | None
    timeout_seconds: float | None
    executor: IdentityId | None
    permission_set_refs: list[str] | None

    @classmethod
    def of(cls, execution: Execution) -> Self:
        """The same of one whose row is still to be written so."""
        return cls(*(getattr(execution, name) for name in cls.__struct_fields__))

    def hand_off(self, entry: Entry, lease: datetime | None) -> HandOff:
        return HandOff(
            execution=self.id,
            lane=entry.lane,
            attempt=self.attempt,
            definition=entry.definition,
            action=self.action,
            action_ref=self.action_ref,
            status=self.status,
            config=self.config,
            env_vars=self.env_vars,
            rule_ref=self.rule_ref,
            trigger_ref=self.trigger_ref,
            timeout_seconds=self.timeout_seconds,
            executor=self.executor,
            permission_set_refs=self.permission_set_refs,
            lease_expires_at=lease,
        )
