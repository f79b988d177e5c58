"""Dead letters: how a message's end is written on its copy, and read again.

A letter that we bury says everything in its `x-attune-` headers. One that the broker buried (it expired,
or another client rejected it) has only the broker's `x-death`, newest death first.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Final
from uuid import UUID

import msgspec

from attune.bus.outcome import Reason
from attune.bus.topology import UNROUTED
from attune.kernel.ids import MessageId

X_QUEUE: Final = "x-attune-queue"
X_REASON: Final = "x-attune-reason"
X_ERROR: Final = "x-attune-error"
X_DIED_AT: Final = "x-attune-died-at"
X_ATTEMPTS: Final = "x-attune-attempts"
X_DEATH: Final = "x-death"

Headers = Mapping[str, object]

_LONGEST_HEADER: Final = 500
_MOST_HEADERS: Final = 20

_BROKER_REASONS: Final = {
    "expired": (Reason.EXPIRED, "nobody took the message before its time to live ended"),
    "rejected": (Reason.REJECTED, "a consumer rejected the message"),
    "maxlen": (Reason.OVERFLOW, "the queue was full"),
    "delivery_limit": (Reason.RETRIES_EXHAUSTED, "the message was delivered too often"),
}


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no consumer will see again unless it is replayed; `body` is as it was received."""

    queue: str
    reason: Reason
    error: str
    died_at: datetime
    body: bytes
    message_id: MessageId | None = None
    message_type: str | None = None
    retry_count: int = 0
    headers: dict[str, str] = {}


class Death(msgspec.Struct, frozen=True):
    """Where, why and when a message ended."""

    queue: str
    reason: Reason
    error: str
    died_at: datetime

    def headers(self, attempts: int = 0) -> dict[str, str | int]:
        """`attempts` counts how often the reader of dead letters has failed with this one."""
        return {
            X_QUEUE: self.queue,
            X_REASON: self.reason.value,
            X_ERROR: self.error,
            X_DIED_AT: self.died_at.isoformat(),
            X_ATTEMPTS: attempts,
        }


class _Glimpse(msgspec.Struct):
    """The little that can be read of a body that may be anything."""

    message_id: object = None
    message_type: object = None
    retry_count: object = 0


_glimpse_decoder = msgspec.json.Decoder(_Glimpse)


def read_dead_letter(found_in: str, headers: Headers, body: bytes, now: datetime) -> DeadLetter:
    """Never fails: a dead letter that cannot be read would be a message lost for good."""
    death = read_death(found_in, headers, now)
    glimpse = _glimpse(body)
    count = glimpse.retry_count
    return DeadLetter(
        queue=death.queue,
        reason=death.reason,
        error=death.error,
        died_at=death.died_at,
        body=body,
        message_id=_message_id(glimpse.message_id),
        message_type=glimpse.message_type if isinstance(glimpse.message_type, str) else None,
        retry_count=count if isinstance(count, int) else 0,
        headers=_foreign(headers),
    )


def read_death(found_in: str, headers: Headers, now: datetime) -> Death:
    if X_REASON in headers:
        return _written_death(found_in, headers, now)
    if found_in == UNROUTED:
        return Death(UNROUTED, Reason.UNROUTED, "no queue takes messages of this kind", now)
    return _broker_death(found_in, headers, now)


def read_attempts(headers: Headers) -> int:
    attempts = headers.get(X_ATTEMPTS)
    return attempts if isinstance(attempts, int) else 0


def _written_death(found_in: str, headers: Headers, now: datetime) -> Death:
    word = str(headers[X_REASON])
    return Death(
        str(headers.get(X_QUEUE, found_in)),
        Reason(word) if word in set(Reason) else Reason.REJECTED,
        str(headers.get(X_ERROR, "")),
        _moment(headers.get(X_DIED_AT), now),
    )


def _broker_death(found_in: str, headers: Headers, now: datetime) -> Death:
    deaths = headers.get(X_DEATH)
    newest = deaths[0] if isinstance(deaths, list) and deaths else None
    if not isinstance(newest, Mapping):
        return Death(found_in, Reason.REJECTED, "somebody published it here directly", now)
    word = str(newest.get("reason"))
    reason, error = _BROKER_REASONS.get(word, (Reason.REJECTED, word))
    return Death(
        str(newest.get("queue", found_in)), reason, error, _moment(newest.get("time"), now)
    )


def _foreign(headers: Headers) -> dict[str, str]:
    """The sender's own headers, as far as they are short words: a copy must fit into one frame."""
    own = {
        key: value
        for key, value in headers.items()
        if isinstance(value, str) and not key.startswith("x-") and len(value) <= _LONGEST_HEADER
    }
    return dict(islice(own.items(), _MOST_HEADERS))


def _glimpse(body: bytes) -> _Glimpse:
    try:
        return _glimpse_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Glimpse()


def _message_id(value: object) -> MessageId | None:
    try:
        return MessageId(UUID(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _moment(value: object, otherwise: datetime) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else otherwise
    except ValueError:
        return otherwise
