"""What a message tells of an execution, and what must be known besides to show it to somebody."""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId
from attune.kernel.messages import ExecutionRequested, ExecutionStatusChanged, Payload
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.model import Execution, ExecutionSummary

_REMEMBERED: Final = 10_000
_SUMMARY: Final = ExecutionSummary.__struct_fields__


class News(msgspec.Struct, frozen=True):
    """With `updated`, all that has changed in the row is told."""

    execution: ExecutionId
    status: ExecutionStatus
    old_status: ExecutionStatus | None = None
    started_at: datetime | None = None
    updated: datetime | None = None


def news_of(item: Payload) -> News | None:
    """Only the message of a new execution names its action; others of that type hurry one that waits."""
    match item:
        case ExecutionRequested(action_ref=str(), is_handed=False):
            return News(item.execution_id, ExecutionStatus.REQUESTED)
        case ExecutionStatusChanged():
            return News(
                item.execution_id, item.status, item.old_status, item.started_at, item.updated
            )
        case _:
            return None


class Acquaintances:
    """Executions of which this process knows what never changes: it made them, or looked at them before.

    They are forgotten with their end, or when there are too many.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[ExecutionId, ExecutionSummary] = OrderedDict()

    def meet(self, executions: Iterable[Execution | ExecutionSummary]) -> None:
        for one in executions:
            self._known[one.id] = one if isinstance(one, ExecutionSummary) else _summary(one)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def suffice(self, news: News) -> bool:
        """Whether these news and what is known tell all of the execution."""
        return news.updated is not None and news.execution in self._known

    def row(self, news: News) -> ExecutionSummary | None:
        """The execution as it is by these news, if that is known."""
        known = self._known.get(news.execution)
        if known is None or news.updated is None:
            return None
        return msgspec.structs.replace(
            known, status=news.status, started_at=news.started_at, updated=news.updated
        )

    def part(self, news: Iterable[News]) -> None:
        for one in news:
            if one.status in TERMINAL:
                self._known.pop(one.execution, None)


def _summary(one: Execution) -> ExecutionSummary:
    return ExecutionSummary(**{name: getattr(one, name) for name in _SUMMARY})


def event_of(row: ExecutionSummary, news: News) -> bytes:
    shown = {
        "entity_type": "execution",
        "entity_id": row.id,
        "id": row.id,
        "action_ref": row.action_ref,
        "status": news.status,
        "old_status": news.old_status,
        "parent": row.parent,
        "enforcement": row.enforcement,
        "rule_ref": row.rule_ref,
        "trigger_ref": row.trigger_ref,
        "started_at": row.started_at,
        "workflow_task": row.workflow_task,
        "created": row.created,
        "updated": row.updated,
    }
    return b"data: " + msgspec.json.encode(shown) + b"\n\n"
