"""An enforcement: `processed` has an execution, `disabled` has the reason why there is none."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.kernel.ids import EnforcementId, EventId, RuleId


class EnforcementStatus(StrEnum):
    CREATED = "created"
    PROCESSED = "processed"
    DISABLED = "disabled"


class Enforcement(msgspec.Struct, frozen=True, kw_only=True):
    """The row. `config` are the parameters as rendered; `payload` is null where it is the event's own."""

    id: EnforcementId
    rule: RuleId | None
    rule_ref: str
    event: EventId | None
    trigger_ref: str
    status: EnforcementStatus = EnforcementStatus.CREATED
    reason: str | None = None
    warnings: list[str] | None = None
    resolved_at: datetime | None = None
    condition: str = "all"
    conditions: dict[str, Any] = {}
    config: dict[str, Any] | None = None
    payload: Any = None
    created: datetime
    updated: datetime


class EnforcementSummary(msgspec.Struct, frozen=True, kw_only=True):
    id: EnforcementId
    rule: RuleId | None
    rule_ref: str
    event: EventId | None
    trigger_ref: str
    status: EnforcementStatus
    condition: str
    reason: str | None
    created: datetime
    updated: datetime
