"""Answers of /enforcements, under the names of the contract."""

from datetime import datetime
from typing import Any, Self

import pydantic
from pydantic import Field

from attune.api.fields import JsonObject
from attune.pipeline.enforcements.model import EnforcementStatus
from attune.pipeline.enforcements.queries import EnforcementDetail


class EnforcementSummary(pydantic.BaseModel):
    """`reason` is why there is no execution."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    rule: int | None
    rule_ref: str
    event: int | None
    trigger_ref: str
    status: EnforcementStatus
    condition: str = Field(examples=["all", "any"])
    reason: str | None
    created: datetime
    updated: datetime


class EnforcementResponse(EnforcementSummary):
    """`warnings` name what a template asked for and the event did not have."""

    conditions: Any
    config: JsonObject | None = Field(description="The action's parameters as rendered.")
    payload: Any = Field(description="The event's, where it has none of its own.")
    warnings: list[str]
    resolved_at: datetime | None

    @classmethod
    def of(cls, found: EnforcementDetail) -> Self:
        payload = found.event_payload if found.payload is None else found.payload
        shown = {name: getattr(found, name) for name in found.__struct_fields__}
        shown |= {"payload": {} if payload is None else payload, "warnings": found.warnings or []}
        return cls.model_validate(shown)
