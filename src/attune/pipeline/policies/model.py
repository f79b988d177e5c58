"""A policy as it binds a lane, and its gates."""

from datetime import datetime
from enum import StrEnum

import msgspec

from attune.kernel.ids import ExecutionId, PolicyId


class Method(StrEnum):
    """What becomes of a new execution for which the limit has no room."""

    ENQUEUE = "enqueue"
    CANCEL = "cancel"


class QuotaType(StrEnum):
    RUNNING = "running_executions"
    TOTAL = "executions_total"


class GateName(StrEnum):
    """What an execution can wait for, in the order in which the first blocker is named."""

    DELAY = "delay"
    PAUSE = "pause"
    WINDOW = "window"
    CONCURRENCY = "concurrency"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    TURN = "turn"
    SYSTEM_CAP = "system_cap"
    WORKER = "worker"


class Rate(msgspec.Struct, frozen=True):
    """No span of `window_seconds` holds more than `max_executions` starts."""

    max_executions: int
    window_seconds: float


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """`per` is "identity" where each has its own; null where all share it."""

    quota_type: QuotaType
    limit: int
    per: str | None = None


class Window(msgspec.Struct, frozen=True):
    """Local times HH:MM in an IANA zone; an end at or before the start is on the next day."""

    days: tuple[str, ...]
    start: str
    end: str
    timezone: str = "UTC"


class Blackout(msgspec.Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    begin: datetime
    end: datetime


class EffectivePolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one policy that binds a lane, as the lane keeps it.

    `parameters` split an action's executions into groups, each with a lane and a limit of its own. With `floor` and
    `ceiling` the limit follows the action (`limit: auto`), and `limit` is null.
    """

    policy: PolicyId
    policy_ref: str
    scope: str
    limit: int | None = None
    floor: int | None = None
    ceiling: int | None = None
    method: Method = Method.ENQUEUE
    parameters: tuple[str, ...] = ()
    rate: Rate | None = None
    quotas: tuple[Quota, ...] = ()
    windows: tuple[Window, ...] = ()
    blackouts: tuple[Blackout, ...] = ()

    @property
    def is_auto(self) -> bool:
        return self.ceiling is not None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate as it stands now: how many more it lets through (null: any number), and when it opens by itself."""

    name: GateName
    free: int | None
    text: str
    limit: int | None = None
    until: datetime | None = None
    policy_ref: str | None = None
    holders: tuple[ExecutionId, ...] = ()

    @property
    def is_closed(self) -> bool:
        return self.free is not None and self.free <= 0
