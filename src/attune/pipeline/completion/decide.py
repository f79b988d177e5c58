"""What follows an attempt that did not come to a good end. Pure."""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from attune.catalog.model import ActionDefinition
from attune.catalog.retrying import TEN_YEARS, Cause, Retries, Retry
from attune.expressions.budget import Budget
from attune.expressions.errors import TooCostly, Unfit
from attune.expressions.patterns import compile_pattern
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Fate, Held, Verdict
from attune.pipeline.queues.model import Pause

# An execution that takes its worker down before anybody sees it run must not take down all of them.
MOST_LOSSES: Final = 5
_LONGEST_TEXT: Final = 10_000


def fate_of(held: Held, definition: ActionDefinition) -> Fate:
    """What was not seen to run goes to another worker; what ran does while it has retries left.

    An action that says `on_worker_lost: fail` must never run twice, so for it even a start that nobody saw counts.
    """
    if held.status is ExecutionStatus.CANCELING:
        return Fate.CANCELLED
    if definition.on_worker_lost != "retry":
        return Fate.ABANDONED
    if held.status is ExecutionStatus.SCHEDULED:
        return Fate.AGAIN if held.losses < MOST_LOSSES else Fate.ABANDONED
    return Fate.AGAIN if _allows(held.retry, held.retries, Cause.WORKER_LOST) else Fate.ABANDONED


def pause_before_next(retry: Retries, spent: int, verdict: Verdict, now: datetime) -> Pause | None:
    """When there is another attempt; null if this one was the last. `spent` retries came before it."""
    if not _allows(retry, spent, verdict.cause) or not _is_chosen(retry.how, verdict):
        return None
    seconds = delay_before(retry.how, spent + 1, verdict.execution)
    until = now + timedelta(seconds=seconds)
    return Pause(until, retry.how.queue_place == "keep", verdict.started_at)


def delay_before(how: Retry, number: int, execution: ExecutionId) -> float:
    """Seconds before the retry of this number, from 1."""
    match how.backoff:
        case "constant":
            seconds = how.delay
        case "linear":
            seconds = how.delay * number
        case "exponential":
            seconds = how.delay * 2.0 ** min(number - 1, 64)
    longest = TEN_YEARS if how.max_delay is None else how.max_delay
    return min(seconds, longest) * (1 - how.jitter * _share(execution, number))


def _share(execution: ExecutionId, number: int) -> float:
    """From 0 up to 1, as if by chance: spread over executions, and the same whoever computes it."""
    digest = blake2b(f"{execution}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _allows(retry: Retries | None, spent: int, cause: Cause) -> bool:
    return retry is not None and spent < retry.max_retries and cause in retry.how.on


def _is_chosen(how: Retry, verdict: Verdict) -> bool:
    """Whether it is one of the errors that a retry was wanted for; without any, all are."""
    if verdict.cause is not Cause.FAILED or not (how.exit_codes or how.matching):
        return True
    return verdict.exit_code in how.exit_codes or any(
        _matches(pattern, verdict.error) for pattern in how.matching
    )


def _matches(pattern: str, error: str) -> bool:
    try:
        return compile_pattern(pattern).found_in(error[-_LONGEST_TEXT:], Budget())
    except (Unfit, TooCostly):
        return False
