"""A dead letter as it is kept, as it is looked at, and what came of replaying some."""

from datetime import datetime

import msgspec

from attune.bus.outcome import Reason
from attune.kernel.ids import DeadLetterId, IdentityId


class KeptLetter(msgspec.Struct, frozen=True, kw_only=True):
    """`fingerprint` tells a letter that the broker delivered twice from two letters."""

    id: DeadLetterId
    queue: str
    reason: str
    error: str | None
    message_id: str | None
    message_type: str | None
    retry_count: int
    body: bytes
    died_at: datetime
    fingerprint: str
    created: datetime
    updated: datetime


class LetterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A letter without its body, which may be large and may hold anything."""

    id: DeadLetterId
    queue: str
    reason: Reason
    error: str | None
    message_id: str | None
    message_type: str | None
    retry_count: int
    size_bytes: int
    died_at: datetime
    replayed_at: datetime | None
    replayed_by: IdentityId | None
    replay_count: int
    created: datetime
    updated: datetime


class Letter(LetterSummary, frozen=True, kw_only=True):
    body: bytes

    def __repr__(self) -> str:
        return f"Letter(id={self.id}, queue={self.queue!r})"


class LetterFilters(msgspec.Struct, frozen=True, kw_only=True):
    """None is no wish. `replayed` leaves either those that were or those that were not."""

    queue: str | None = None
    reason: Reason | None = None
    message_type: str | None = None
    replayed: bool | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why one letter of many was not replayed."""

    id: DeadLetterId
    error: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """`remaining` counts those like the ones asked for that still wait, the refused among them."""

    replayed: int
    refused: tuple[Refusal, ...]
    remaining: int
