"""One function for each gate: how many more it lets through now, and what to tell who waits. Pure.

An admission and an explanation call the same functions, so what is told is what was decided.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from attune.pipeline.policies.calendar import opening
from attune.pipeline.policies.model import EffectivePolicy, Gate, GateName, Quota, Rate


class Starts(msgspec.Struct, frozen=True):
    """Starts that a rate still counts: their times in order, and how many were admitted and have not begun yet."""

    times: tuple[datetime, ...] = ()
    pending: int = 0

    @property
    def count(self) -> int:
        return len(self.times) + self.pending


def room(gates: Sequence[Gate]) -> int | None:
    """How many all of them together let through; null for any number."""
    free = [gate.free for gate in gates if gate.free is not None]
    return max(min(free), 0) if free else None


def first_blocker(gates: Sequence[Gate]) -> Gate | None:
    return next((gate for gate in gates if gate.is_closed), None)


def opens_at(gates: Sequence[Gate]) -> datetime | None:
    """When the last of the closed gates of time opens; null where none of them is one."""
    return max(
        (gate.until for gate in gates if gate.is_closed and gate.until is not None), default=None
    )


def pause_gate() -> Gate:
    return Gate(name=GateName.PAUSE, free=0, text="the queue is paused until somebody resumes it")


def window_gate(policy: EffectivePolicy, now: datetime) -> Gate:
    found = opening(policy.windows, policy.blackouts, now)
    return Gate(
        name=GateName.WINDOW,
        free=None if found.is_open else 0,
        text=found.text,
        until=None if found.is_open else found.until,
        policy_ref=policy.policy_ref,
    )


def concurrency_gate(policy_ref: str, limit: int, active: int) -> Gate:
    if limit == 0:
        text = "the limit is 0, which holds everything until it is raised"
    else:
        text = f"{active} of at most {limit} hold a slot"
    return Gate(
        name=GateName.CONCURRENCY,
        free=limit - active,
        text=text,
        limit=limit,
        policy_ref=policy_ref,
    )


def quota_gate(policy_ref: str, quota: Quota, active: int) -> Gate:
    whose = "of the identity " if quota.per else ""
    return Gate(
        name=GateName.QUOTA,
        free=quota.limit - active,
        text=f"the quota {whose}lets {quota.limit} run at once, and {active} do",
        limit=quota.limit,
        policy_ref=policy_ref,
    )


def rate_gate(policy_ref: str, rate: Rate, starts: Starts) -> Gate:
    """An admission that has not begun counts as if it began now: no window of starts ever holds more."""
    free = rate.max_executions - starts.count
    return Gate(
        name=GateName.RATE_LIMIT,
        free=free,
        text=f"{starts.count} of at most {rate.max_executions} started in {rate.window_seconds:g} s",
        limit=rate.max_executions,
        until=_frees_at(rate, starts) if free <= 0 else None,
        policy_ref=policy_ref,
    )


def _frees_at(rate: Rate, starts: Starts) -> datetime | None:
    """When so many of the counted starts are past that one more fits; null while that hangs on one yet to begin."""
    must_pass = starts.count - rate.max_executions + 1
    if must_pass > len(starts.times):
        return None
    return starts.times[must_pass - 1] + timedelta(seconds=rate.window_seconds)
