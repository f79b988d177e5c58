"""A dead letter as it is kept."""

from datetime import datetime

import msgspec

from attune.kernel.ids import DeadLetterId


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
