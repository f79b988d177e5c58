"""An event, and what the rules made of it."""

from datetime import datetime
from typing import Any, Final

import msgspec

from attune.kernel.ids import EventId, RuleId, TriggerId

# Idempotency keys that begin so are for events of our own.
OWN_KEYS: Final = "attune:"


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody tells us. With `rule`, only that rule is considered."""

    trigger_ref: str
    payload: Any = {}
    config: dict[str, Any] | None = None
    rule: RuleId | None = None
    source: int | None = None
    source_ref: str | None = None
    idempotency_key: str | None = None


class Consideration(msgspec.Struct, frozen=True):
    """One rule, and why it did or did not answer the event."""

    rule_ref: str
    matched: bool
    reason: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The row. `rules` is null until the event was processed."""

    id: EventId
    trigger: TriggerId | None
    trigger_ref: str
    source: int | None = None
    source_ref: str | None = None
    rule: RuleId | None = None
    rule_ref: str | None = None
    idempotency_key: str | None = None
    processed_at: datetime | None = None
    config: dict[str, Any] | None = None
    rules: list[Consideration] | None = None
    payload: Any = {}
    created: datetime
    updated: datetime


class EventSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows: not the payload, only whether there is one."""

    id: EventId
    trigger: TriggerId | None
    trigger_ref: str
    source: int | None
    source_ref: str | None
    rule: RuleId | None
    rule_ref: str | None
    has_payload: bool
    created: datetime
    updated: datetime
