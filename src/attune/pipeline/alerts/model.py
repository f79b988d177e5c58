"""An alert, what it is made from, and what is known of conditions that hold for a while."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.workers.history import WorkerEvent


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class ConditionName(StrEnum):
    """What may hold of the whole installation for a while. The Prometheus rules have the same names."""

    HIGH_EXECUTION_TIMEOUT_RATE = "high_execution_timeout_rate"
    NO_ACTIVE_WORKERS = "no_active_workers"
    DLQ_BUILDUP = "dlq_buildup"
    STALE_EXECUTIONS = "stale_executions"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of a core.alert event. What was resolved has the correlation id of what was raised."""

    severity: Severity
    category: str
    failure_type: str
    component_type: str
    component_id: int | None
    component_ref: str | None
    worker_role: str | None
    observed_at: datetime
    summary: str
    details: dict[str, Any]
    correlation_id: str


class Keyed(msgspec.Struct, frozen=True):
    """`key` is the event's idempotency key: however often somebody raises it, there is one event.

    It begins with what no user's key may, so that nobody can use up the key of an alert to come.
    """

    key: str
    alert: Alert


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the workers' history with the names that people know. What is gone meanwhile has none."""

    id: int
    worker: WorkerId
    event: WorkerEvent
    at: datetime
    execution: ExecutionId | None
    downtime_seconds: float | None
    text: str | None
    worker_name: str | None
    worker_role: str | None
    action_ref: str | None
    rule_ref: str | None


class Place(msgspec.Struct, frozen=True):
    """How far somebody has read in the workers' history."""

    at: datetime
    id: int = 0


class Page(msgspec.Struct, frozen=True):
    """`untold` are those of a stretch of the history that have no event; null for `last` is the end."""

    untold: tuple[Keyed, ...]
    last: Place | None


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """The installation in numbers, now. `timeouts` are those of the last minute.

    `had_workers` tells that there was a worker at some time, `stale_executions` how many are with a worker that has
    not begun them for five minutes.
    """

    active_workers: int
    had_workers: bool
    dead_letters: int
    stale_executions: int
    timeouts: int


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """A condition began to hold, and ended if `until` is set. The values are what was measured then.

    `told` means that events tell all of this. The next episode does not begin before that.
    """

    since: datetime
    value: int
    until: datetime | None = None
    last_value: int | None = None
    told: bool = False


Episodes = dict[ConditionName, Episode]
