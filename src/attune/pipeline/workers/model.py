"""A worker as the others see it."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.kernel.ids import IdentityId, WorkerId
from attune.kernel.settings import WorkerType


class WorkerStatus(StrEnum):
    ACTIVE = "active"
    INACTIVE = "inactive"
    BUSY = "busy"
    ERROR = "error"


class HealthState(StrEnum):
    """What a person wants to know first; `cordoned` goes before all."""

    ACTIVE = "active"
    BUSY = "busy"
    CORDONED = "cordoned"
    OFFLINE = "offline"
    ERROR = "error"
    INACTIVE = "inactive"


class RuntimeSupport(msgspec.Struct, frozen=True):
    """A runtime that was found by running its commands."""

    name: str
    versions: list[str] = []


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself when it comes."""

    name: str
    capacity: int
    supported_runtimes: list[RuntimeSupport]
    incarnation: str
    worker_type: WorkerType = WorkerType.LOCAL
    host: str | None = None
    port: int | None = None
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """The row. A worker of the same name that comes again has the same id and another incarnation."""

    id: WorkerId
    name: str
    worker_type: WorkerType
    worker_role: str = "action"
    host: str | None
    port: int | None
    status: WorkerStatus
    capacity: int
    supported_runtimes: list[RuntimeSupport]
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    incarnation: str
    last_heartbeat: datetime
    cordoned: bool = False
    cordon_reason: str | None = None
    cordoned_by: IdentityId | None = None
    cordoned_at: datetime | None = None
    created: datetime
    updated: datetime


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, the first question that it has not answered, and when it last answered one."""

    id: WorkerId
    name: str
    status: WorkerStatus
    asked_at: datetime | None
    answered_at: datetime | None


class Probing(msgspec.Struct, frozen=True):
    """Who is to be asked now, who of them did not answer in time, and when to come again."""

    ask: tuple[Asked, ...]
    unresponsive: tuple[Asked, ...]
    next_at: datetime
