"""What a transaction has to say once it is committed.

A step puts in one item for each row that it moved; they leave as few messages, each with many items. A step that
is tried again starts with an empty box, because it makes its own.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

import msgspec

from attune.bus.announcer import COMPANY, LEISURE, Announcer
from attune.kernel.envelope import Stamp
from attune.kernel.ids import ActionId, EnforcementId, ExecutionId
from attune.kernel.messages import (
    ExecutionRequested,
    ExecutionStatusChanged,
    MessageType,
    Payload,
)
from attune.kernel.statuses import ExecutionStatus
from attune.store.database import Tx


class Created(Protocol):
    """What a message says of a new execution."""

    @property
    def id(self) -> ExecutionId: ...
    @property
    def action(self) -> ActionId | None: ...
    @property
    def action_ref(self) -> str: ...
    @property
    def enforcement(self) -> EnforcementId | None: ...


class Moved(msgspec.Struct, frozen=True):
    """An execution whose status a step has written."""

    id: ExecutionId
    action: ActionId | None
    action_ref: str
    attempt: int
    status: ExecutionStatus


class Mail:
    """How one process sends: under its name, and without waiting for the broker.

    `acted_on`: somebody acts on news, too, as a queue outside the database does. Then none of them wait.
    """

    def __init__(self, announcer: Announcer, stamp: Stamp, *, acted_on: bool = False) -> None:
        self._announcer = announcer
        self._stamp = stamp
        self._acted_on = acted_on

    @property
    def source(self) -> str:
        return self._stamp.source

    def send(self, kind: MessageType, items: list[Payload], to: str | None = None) -> None:
        """`to` names one worker's queue, for an order; everything else finds its way by its type."""
        if to is None:
            self._announcer.tell(self._stamp, kind, items)
        else:
            self._announcer.announce(*self._stamp.envelopes(kind, items), to=to)

    def mention(self, kind: MessageType, items: list[Payload]) -> None:
        """The same for news that may wait for others: a moment if people follow them, else somewhat longer."""
        if self._acted_on:
            self.send(kind, items)
        else:
            within = COMPANY if kind is MessageType.EXECUTION_NEWS else LEISURE
            self._announcer.mention(self._stamp, kind, items, within)

    def moved(self, moves: list[Payload], *, may_wait: bool) -> None:
        """Executions have changed. Who follows them hears of it now, or in a moment if it may wait for others; executors at
        leisure, because nothing is left to do for them."""
        tell = self.mention if may_wait else self.send
        tell(MessageType.EXECUTION_NEWS, moves)
        self.mention(MessageType.EXECUTION_STATUS_CHANGED, moves)


class Outbox:
    """`is_busy`: there is more of the same to come, so that its news may leave together with others."""

    def __init__(self, tx: Tx, mail: Mail) -> None:
        self.is_busy = False
        self._mail = mail
        self._orders: dict[tuple[MessageType, str], list[Payload]] = {}
        self._work: dict[MessageType, list[Payload]] = {}
        self._news: dict[MessageType, list[Payload]] = {}
        self._created: dict[ExecutionId, Created] = {}
        self._moves: list[Payload] = []
        self._fills: list[Callable[[], None]] = []
        tx.on_commit(self._send)

    def fill(self, fill: Callable[[], None]) -> None:
        """Puts in what is known only once everything is written."""
        self._fills.append(fill)

    def put(self, kind: MessageType, item: Payload) -> None:
        """Somebody acts on it."""
        self._work.setdefault(kind, []).append(item)

    def order(self, kind: MessageType, item: Payload, to: str) -> None:
        """For one worker, whose queue `to` names."""
        self._orders.setdefault((kind, to), []).append(item)

    def mention(self, kind: MessageType, item: Payload) -> None:
        """What this commit has done itself: nobody has to act on it, and nobody waits for it."""
        self._news.setdefault(kind, []).append(item)

    def created(self, one: Created) -> None:
        """An execution was made."""
        self._created[one.id] = one

    def leave_to_worker(self, execution: ExecutionId) -> bool:
        """The worker that this execution is handed to tells what nobody has told of it; whether it is new."""
        one = self._created.pop(execution, None)
        if one is not None:
            self.mention(MessageType.EXECUTION_REQUESTED, _requested(one, is_handed=True))
        return one is not None

    def moved(
        self,
        moved: Moved,
        old: ExecutionStatus | None,
        *,
        started_at: datetime | None = None,
        updated: datetime | None = None,
    ) -> None:
        """An execution's status was written. Who also tells when saves those who show it a look at the row."""
        item = ExecutionStatusChanged(
            execution_id=moved.id,
            status=moved.status,
            old_status=old,
            action_ref=moved.action_ref,
            attempt=moved.attempt,
            started_at=started_at,
            updated=updated,
        )
        self._moves.append(item)

    def hurry(self, executions: Iterable[ExecutionId]) -> None:
        """These have a slot now and no worker. Without an action's ref, as here, the message is not of a new one."""
        for execution in sorted(executions):
            self.put(MessageType.EXECUTION_REQUESTED, ExecutionRequested(execution_id=execution))

    def _send(self) -> None:
        """Orders first: a worker waits for them."""
        for fill in self._fills:
            fill()
        for (kind, to), items in self._orders.items():
            self._mail.send(kind, items, to)
        for one in self._created.values():
            self.put(MessageType.EXECUTION_REQUESTED, _requested(one))
        for kind, items in self._work.items():
            self._mail.send(kind, items)
        if self._moves:
            self._mail.moved(self._moves, may_wait=self.is_busy)
        for kind, items in self._news.items():
            self._mail.mention(kind, items)


def _requested(one: Created, *, is_handed: bool = False) -> ExecutionRequested:
    return ExecutionRequested(
        execution_id=one.id,
        action_id=one.action,
        action_ref=one.action_ref,
        enforcement_id=one.enforcement,
        is_handed=is_handed,
    )
