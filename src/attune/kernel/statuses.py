"""The states of an execution, and the one table of how they may follow each other.

Every write of a status goes through `check_transition`, or carries `sources_of(target)` in its WHERE.
"""

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType

from attune.kernel.errors import IllegalTransition


class ExecutionStatus(StrEnum):
    REQUESTED = "requested"
    SCHEDULING = "scheduling"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    CANCELING = "canceling"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class Owner(StrEnum):
    """Who may write the next status: the executor until the hand-off, the worker after it."""

    EXECUTOR = "executor"
    WORKER = "worker"
    NOBODY = "nobody"


_S = ExecutionStatus

TERMINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.TIMEOUT, _S.CANCELLED, _S.ABANDONED})

# Going back to `requested` is a retry, or work taken back from a lost worker: attempt + 1 in the same write.
TRANSITIONS: MappingProxyType[ExecutionStatus, frozenset[ExecutionStatus]] = MappingProxyType(
    {
        _S.REQUESTED: frozenset({_S.SCHEDULING, _S.FAILED, _S.TIMEOUT, _S.CANCELLED}),
        _S.SCHEDULING: frozenset({_S.SCHEDULED, _S.REQUESTED, _S.FAILED, _S.TIMEOUT, _S.CANCELLED}),
        _S.SCHEDULED: frozenset(
            {
                _S.RUNNING,
                _S.REQUESTED,
                _S.CANCELING,
                _S.FAILED,
                _S.TIMEOUT,
                _S.CANCELLED,
                _S.ABANDONED,
            }
        ),
        _S.RUNNING: frozenset(
            {_S.COMPLETED, _S.FAILED, _S.TIMEOUT, _S.CANCELING, _S.ABANDONED, _S.REQUESTED}
        ),
        # An action may end by itself between the wish to cancel it and the signal.
        _S.CANCELING: frozenset({_S.CANCELLED, _S.COMPLETED, _S.FAILED, _S.TIMEOUT, _S.ABANDONED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.TIMEOUT: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.ABANDONED: frozenset(),
    }
)

_OWNERS: MappingProxyType[ExecutionStatus, Owner] = MappingProxyType(
    {
        _S.REQUESTED: Owner.EXECUTOR,
        _S.SCHEDULING: Owner.EXECUTOR,
        _S.SCHEDULED: Owner.WORKER,
        _S.RUNNING: Owner.WORKER,
        _S.CANCELING: Owner.WORKER,
    }
)


def may_follow(source: ExecutionStatus, target: ExecutionStatus) -> bool:
    return target in TRANSITIONS[source]


def check_transition(source: ExecutionStatus, target: ExecutionStatus) -> None:
    if not may_follow(source, target):
        raise IllegalTransition(
            f"An execution that is {source} cannot become {target}.", source=source, target=target
        )


def sources_of(target: ExecutionStatus) -> frozenset[ExecutionStatus]:
    """The statuses a write to `target` may start from: what belongs in its WHERE."""
    return frozenset(source for source, targets in TRANSITIONS.items() if target in targets)


def one_of(column: str, statuses: Iterable[ExecutionStatus]) -> str:
    """The condition in SQL's words. Not as `IN`, for which SQLite makes a table of its own in each statement."""
    each = (f"{column} = '{status.value}'" for status in sorted(statuses))
    return f"({' OR '.join(each)})"


def sources_through(*arrows: ExecutionStatus) -> frozenset[ExecutionStatus]:
    """Where a write to the last of several arrows may start, when one step passes through all of them.

    `sources_through(RUNNING, COMPLETED)`: what runs may complete, and so may what was handed over and ended before
    anybody could see it run.
    """
    return frozenset().union(*(sources_of(target) for target in arrows)) - set(arrows[1:])


def owner_of(status: ExecutionStatus) -> Owner:
    """Who may write while an execution is in `status` and no lease has run out."""
    return _OWNERS.get(status, Owner.NOBODY)
