"""What tables of queues and of those who wait in them show."""

from typing import Any

import msgspec

from attune.cli.rendering import Column
from attune.client.queue_models import Queue, QueueEntry


def group_text(values: dict[str, Any] | None) -> str | None:
    return msgspec.json.encode(values).decode() if values else None


def _slots(queue: Queue) -> str:
    most = queue.max_concurrent
    return f"{queue.active_count}" if most is None else f"{queue.active_count}/{most}"


def _reason(queue: Queue) -> str | None:
    """Those that have a slot wait, too, where no worker has room."""
    return queue.reason or ("worker" if queue.ready_count else None)


QUEUE_COLUMNS: list[Column[Queue]] = [
    Column("ACTION", lambda each: each.action_ref),
    Column("GROUP", lambda each: group_text(each.group)),
    Column("WAITING", lambda each: each.queue_length, right=True),
    Column("READY", lambda each: each.ready_count, right=True),
    Column("ACTIVE", _slots, right=True),
    Column("REASON", _reason),
    Column("OPENS", lambda each: each.retry_at),
    Column("POLICY", lambda each: each.policy_ref),
    Column("OLDEST", lambda each: each.oldest_enqueued_at),
]
ENTRY_COLUMNS: list[Column[QueueEntry]] = [
    Column("EXECUTION", lambda each: each.execution, right=True),
    Column("POSITION", lambda each: each.position, right=True),
    Column("PRIORITY", lambda each: each.priority),
    Column("STATE", lambda each: each.state),
    Column("REASON", lambda each: each.reason),
    Column("GROUP", lambda each: group_text(each.group)),
    Column("ENQUEUED", lambda each: each.enqueued_at),
]
