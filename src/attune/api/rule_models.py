"""Bodies and answers of /rules, under the names of the contract."""

from datetime import datetime
from typing import Annotated, Any

import pydantic
from pydantic import Field

from attune.api.fields import Filled, JsonObject, Ref

Conditions = Annotated[
    JsonObject | list[Any],
    Field(
        description="{} for always; all, any, not, or an expression; or a list that must all hold."
    ),
]


class RuleSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    ref: str
    pack_ref: str
    label: str
    description: str | None
    enabled: bool
    trigger_ref: str
    trigger_params: JsonObject
    action_ref: str
    action_params: JsonObject
    permission_set_refs: list[str] | None
    created: datetime
    updated: datetime


class RuleResponse(RuleSummary):
    """`trigger` and `action` are null while what the refs name is away."""

    pack: int
    trigger: int | None
    action: int | None
    conditions: JsonObject
    strict: bool
    is_adhoc: bool
    owner_identity: int | None


class CreateRuleRequest(pydantic.BaseModel):
    ref: Ref
    pack_ref: Ref
    label: Filled
    trigger_ref: Ref
    action_ref: Ref
    description: str | None = None
    enabled: bool | None = None
    trigger_params: JsonObject | None = None
    conditions: Conditions | None = None
    action_params: JsonObject | None = None
    strict: bool | None = Field(default=None, description="Refuse a template over a missing field.")
    permission_set_refs: list[str] | None = None


class UpdateRuleRequest(pydantic.BaseModel):
    label: Filled | None = None
    trigger_ref: Ref | None = None
    action_ref: Ref | None = None
    description: str | None = None
    enabled: bool | None = None
    trigger_params: JsonObject | None = None
    conditions: Conditions | None = None
    action_params: JsonObject | None = None
    strict: bool | None = None
    permission_set_refs: list[str] | None = None
