"""What a transaction has to say once it is committed.

A step puts in one item for each row that it moved; they leave as few messages, each with many items. A step that
is tried again starts with an empty box, because it makes its own.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from attune.bus.announcer import Announcer
from attune.kernel.envelope import Stamp
from attune.kernel.ids import ActionId, ExecutionId
from attune.kernel.messages import (
    ExecutionRequested,
    ExecutionStatusChanged,
    MessageType,
    Payload,
)
from attune.kernel.statuses import ExecutionStatus
from attune.store.database import Tx

# What a commit has done: nobody has to act on it.
_NEWS: Final = frozenset({MessageType.EXECUTION_STATUS_CHANGED, MessageType.EXECUTION_COMPLETED})


class Moved(msgspec.Struct, frozen=True):
    """An execution whose status a step has written."""

    id: ExecutionId
    action: ActionId | None
    action_ref: str
    attempt: int
    status: ExecutionStatus


class Mail:
    """How one process sends: under its name, and without waiting for the broker."""

    def __init__(self, announcer: Announcer, stamp: Stamp) -> None:
        self._announcer = announcer
        self._stamp = stamp

    @property
    def source(self) -> str:
        return self._stamp.source

    def send(self, kind: MessageType, items: list[Payload], to: str | None) -> None:
        self._announcer.announce(*self._stamp.envelopes(kind, items), to=to)

    def mention(self, kind: MessageType, items: list[Payload]) -> None:
        """The same for news that may wait a moment for others."""
        self._announcer.mention(self._stamp, kind, items)


class Outbox:
    """`is_busy`: there is more of the same to come, so that its news may leave together with others."""

    def __init__(self, tx: Tx, mail: Mail) -> None:
        self.is_busy = False
        self._mail = mail
        self._items: dict[tuple[MessageType, str | None], list[Payload]] = {}
        self._fills: list[Callable[[], None]] = []
        tx.on_commit(self._send)

    def fill(self, fill: Callable[[], None]) -> None:
        """Puts in what is known only once everything is written."""
        self._fills.append(fill)

    def put(self, kind: MessageType, item: Payload, to: str | None = None) -> None:
        """`to` names one worker's queue, for an order; everything else finds its way by its type."""
        self._items.setdefault((kind, to), []).append(item)

    def moved(self, moved: Moved, old: ExecutionStatus | None) -> None:
        """An execution's status was written."""
        item = ExecutionStatusChanged(
            execution_id=moved.id,
            status=moved.status,
            old_status=old,
            action_ref=moved.action_ref,
            attempt=moved.attempt,
        )
        self.put(MessageType.EXECUTION_STATUS_CHANGED, item)

    def hurry(self, executions: Iterable[ExecutionId]) -> None:
        """These have a slot now and no worker. Without an action's ref, as here, the message is not of a new one."""
        for execution in sorted(executions):
            self.put(MessageType.EXECUTION_REQUESTED, ExecutionRequested(execution_id=execution))

    def _send(self) -> None:
        for fill in self._fills:
            fill()
        for (kind, to), items in self._items.items():
            if self.is_busy and kind in _NEWS:
                self._mail.mention(kind, items)
            else:
                self._mail.send(kind, items, to)
