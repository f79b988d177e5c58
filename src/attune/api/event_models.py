"""Bodies and answers of /events, under the names of the contract."""

import re
from datetime import datetime
from typing import Annotated, Any, Final

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field

from attune.api.fields import JsonObject, Ref
from attune.pipeline.events.model import OWN_KEYS

MANY: Final = 10_000

_RULE: Final = re.compile(r"rule_([0-9]{1,18})", re.ASCII)


def _rule_binding(text: str) -> str:
    if not _RULE.fullmatch(text):
        raise ValueError("must have the form rule_<id>")
    return text


def _object(payload: Any) -> Any:
    """Nothing at all is an object without fields: clients count on an object."""
    return {} if payload is None else payload


def _free_key(key: str) -> str:
    if key.startswith(OWN_KEYS):
        raise ValueError(
            f"must not begin with {OWN_KEYS!r}, which is for events of the engine itself"
        )
    return key


EventKey = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_free_key)]


class CreateEventRequest(pydantic.BaseModel):
    trigger_ref: Ref
    payload: Any = Field(default=None, description="Any JSON; null is the same as {}.")
    config: JsonObject | None = None
    trigger_instance_id: Annotated[str, AfterValidator(_rule_binding)] | None = Field(
        default=None, examples=["rule_7"], description="The one rule that is to answer it."
    )
    idempotency_key: EventKey | None = Field(
        default=None, description="A second event with it is answered with the first."
    )

    @property
    def rule(self) -> int | None:
        found = _RULE.fullmatch(self.trigger_instance_id or "")
        return int(found[1]) if found else None


class CreateEventsRequest(pydantic.BaseModel):
    events: list[CreateEventRequest] = Field(max_length=MANY)


class EventSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    trigger: int | None
    trigger_ref: str
    source: int | None
    source_ref: str | None
    rule: int | None
    rule_ref: str | None
    has_payload: bool
    created: datetime
    updated: datetime


class ConsideredRule(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    rule_ref: str
    matched: bool
    reason: str


class EventResponse(pydantic.BaseModel):
    """`rules` are those that were considered, and why each did or did not answer; null until that was done."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    trigger: int | None
    trigger_ref: str
    source: int | None
    source_ref: str | None
    rule: int | None
    rule_ref: str | None
    payload: Annotated[Any, BeforeValidator(_object), Field(description="As it was given.")]
    config: JsonObject | None
    rules: list[ConsideredRule] | None
    processed_at: datetime | None
    created: datetime
    updated: datetime
