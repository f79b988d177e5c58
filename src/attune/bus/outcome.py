"""What becomes of a message after its handler ran: one decision for every adapter."""

from enum import StrEnum

import msgspec

from attune.kernel.errors import AttuneError

_LONGEST_ERROR = 2000


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Delays in seconds that grow from `first` by `factor` up to `ceiling`, at most `max_retries` times."""

    first: float = 1.0
    factor: float = 2.0
    ceiling: float = 60.0
    max_retries: int = 10

    def delay(self, retry_count: int) -> float:
        """Seconds before the delivery after one that had already been retried `retry_count` times."""
        # The count may be foreign: it must neither overflow the power nor ask for a rung that is not there.
        exponent = min(max(retry_count, 0), self.max_retries, 64)
        return min(self.ceiling, self.first * self.factor**exponent)

    def delays(self) -> tuple[float, ...]:
        """Every delay that `delay` can give, once each: the rungs that a broker must provide."""
        return tuple(sorted({self.delay(count) for count in range(self.max_retries + 1)}))


class Reason(StrEnum):
    """Why a message is a dead letter."""

    BAD_MESSAGE = "bad_message"
    FAILED = "failed"
    RETRIES_EXHAUSTED = "retries_exhausted"
    EXPIRED = "expired"
    REJECTED = "rejected"
    OVERFLOW = "overflow"
    UNROUTED = "unrouted"


class Ack(msgspec.Struct, frozen=True):
    pass


class Retry(msgspec.Struct, frozen=True):
    delay: float
    error: str


class Bury(msgspec.Struct, frozen=True):
    reason: Reason
    error: str


Outcome = Ack | Retry | Bury


def decide(failure: Exception | None, retry_count: int, policy: RetryPolicy) -> Outcome:
    """Ack what succeeded, retry what may heal while retries last, bury the rest with the reason."""
    if failure is None:
        return Ack()
    if not is_retriable(failure):
        return Bury(Reason.FAILED, describe(failure))
    # A count below zero is a foreign sender's lie, and no way to more retries than others get.
    if not 0 <= retry_count < policy.max_retries:
        return Bury(Reason.RETRIES_EXHAUSTED, describe(failure))
    return Retry(policy.delay(retry_count), describe(failure))


def is_retriable(failure: Exception) -> bool:
    """Our own errors say it themselves; of the others only time-outs and the operating system's may heal."""
    if isinstance(failure, AttuneError):
        return failure.retriable
    return isinstance(failure, TimeoutError | OSError)


def describe(failure: Exception) -> str:
    """An error as its dead letter shows it: short enough for a message header, named when it has no words."""
    words = str(failure)
    if isinstance(failure, AttuneError):
        text = words or failure.code
    else:
        text = f"{type(failure).__name__}: {words}" if words else type(failure).__name__
    # Half a character, as a file name may have, must not keep the letter from being sent.
    return text[:_LONGEST_ERROR].encode(errors="replace").decode()
