"""Queues, who waits in them and why, and the runtime settings, under the names of the API."""

from datetime import datetime
from typing import Any

import msgspec

from attune.kernel.ids import ExecutionId, LaneId


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One for each action, or for each action and group. `max_concurrent` is null for no limit.

    `active_count` have a slot, of whom `ready_count` wait for a worker. `reason` is what the first in line waits for.
    """

    id: LaneId
    action_ref: str
    group: dict[str, Any] | None = None
    queue_length: int = 0
    active_count: int = 0
    ready_count: int = 0
    max_concurrent: int | None = None
    paused: bool = False
    reason: str | None = None
    retry_at: datetime | None = None
    policy_ref: str | None = None
    oldest_enqueued_at: datetime | None = None
    total_enqueued: int = 0
    total_completed: int = 0


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`position` counts from 1; null for what a worker has."""

    execution: ExecutionId
    position: int | None
    priority: str
    state: str
    enqueued_at: datetime
    reason: str | None = None
    group: dict[str, Any] | None = None


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The queues of an action together, or that of one group; `queues` is how many they are."""

    action_ref: str
    paused: bool
    queue_length: int
    active_count: int
    queues: int = 1
    group: dict[str, Any] | None = None


class ClearedQueue(QueueState, frozen=True, kw_only=True):
    """`cancelled` is how many of those that waited have ended so."""

    cancelled: int


class SystemQueue(msgspec.Struct, frozen=True, kw_only=True):
    queue_depth: int
    active_count: int
    max_concurrent: int
    by_priority: dict[str, int]


class Reprioritized(msgspec.Struct, frozen=True, kw_only=True):
    id: ExecutionId
    priority: str


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that is closed. `until` is when it opens by itself; `holders` have what it waits for."""

    gate: str
    text: str = ""
    policy_ref: str | None = None
    limit: int | None = None
    holders: list[ExecutionId] | None = None
    until: datetime | None = None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until it starts: as likely less as more, and what nine of ten stay below."""

    p50_seconds: float
    p90_seconds: float


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of waiting; `until` is null for the one that lasts."""

    reason: str
    since: datetime
    until: datetime | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why an execution waits. One that does not has no blockers; its history tells what it waited for."""

    waiting: bool
    position: int | None = None
    first_blocker: Any = None
    blockers: list[Blocker] = []
    next: str | None = None
    estimate: Estimate | None = None
    history: list[Wait] = []


class SettingsInForce(msgspec.Struct, frozen=True, kw_only=True):
    max_concurrent_executions: int | None = None
    max_queue_length: int | None = None
    queue_timeout_seconds: float | None = None
    ageing_seconds: float | None = None


class RuntimeSettings(SettingsInForce, frozen=True, kw_only=True):
    """As they were set, null for the default; `effective` is what holds now."""

    effective: SettingsInForce = SettingsInForce()
