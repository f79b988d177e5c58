"""Bodies and answers of /policies, under the names of the contract; inside, the same are columns of one row."""

from datetime import datetime
from typing import Annotated, Any

import pydantic
from pydantic import Field, StrictInt

from attune.api.fields import Filled, JsonObject, Ref, changed, given
from attune.catalog.model import Policy
from attune.catalog.policy_rules import LARGEST, scope_type_of

Limit = Annotated[
    StrictInt,
    Field(ge=0, le=LARGEST, description="How many may run at once; 0 holds everything."),
]
Priority = Annotated[
    StrictInt,
    Field(ge=-LARGEST - 1, le=LARGEST, description="Of several, the highest is in effect."),
]
Method = Annotated[str, Field(examples=["enqueue"], description="What happens to the others.")]


class Scope(pydantic.BaseModel):
    """Where `type` is absent, it is that of the narrowest thing named."""

    type: str | None = Field(default=None, examples=["action"])
    pack_ref: Ref | None = None
    action_ref: Ref | None = None


class Concurrency(pydantic.BaseModel):
    limit: Limit | None = None
    method: Method | None = None
    parameters: list[str] | None = None


class ScopeResponse(pydantic.BaseModel):
    type: str
    pack_ref: str | None
    action_ref: str | None


class ConcurrencyResponse(pydantic.BaseModel):
    limit: int
    method: str
    parameters: list[str]


class PolicyResponse(pydantic.BaseModel):
    """`pack` and `pack_ref` are what it belongs to, `scope` is what it is about."""

    id: int
    ref: str
    pack: int | None
    pack_ref: str | None
    name: str
    description: str | None
    enabled: bool
    priority: int
    scope: ScopeResponse
    concurrency: ConcurrencyResponse | None
    rate_limit: JsonObject | None
    quotas: list[JsonObject]
    windows: list[JsonObject]
    blackouts: list[JsonObject]
    tags: list[str]
    is_adhoc: bool
    created: datetime
    updated: datetime


class _PolicyFields(pydantic.BaseModel):
    """Gates that have no effect yet may be empty, as an answer has them."""

    name: Filled | None = None
    description: str | None = None
    enabled: bool | None = None
    priority: Priority | None = None
    concurrency: Concurrency | None = None
    rate_limit: JsonObject | None = None
    quotas: list[JsonObject] | None = None
    windows: list[JsonObject] | None = None
    blackouts: list[JsonObject] | None = None
    tags: list[str] | None = None


class CreatePolicyRequest(_PolicyFields):
    ref: Ref
    scope: Scope
    pack_ref: Ref | None = Field(
        default=None, description="What it belongs to; the pack that its ref begins with."
    )


class UpdatePolicyRequest(_PolicyFields):
    scope: Scope | None = None


def new_values(body: CreatePolicyRequest) -> dict[str, Any]:
    return _columns(given(body))


def changed_values(body: UpdatePolicyRequest | None) -> dict[str, Any]:
    """A part of `concurrency` that is not named stays as it is."""
    return _columns(changed(body))


def policy_response(policy: Policy) -> PolicyResponse:
    is_action = policy.scope_type == "action"
    is_pack = policy.scope_type == "pack"
    return PolicyResponse(
        scope=ScopeResponse(
            type=policy.scope_type,
            pack_ref=policy.scope_ref if is_pack else None,
            action_ref=policy.scope_ref if is_action else None,
        ),
        concurrency=_concurrency_of(policy),
        **{name: getattr(policy, name) for name in _PLAIN},
    )


_PLAIN = [name for name in PolicyResponse.model_fields if name not in ("scope", "concurrency")]


def _concurrency_of(policy: Policy) -> ConcurrencyResponse | None:
    if policy.concurrency_limit is None:
        return None
    return ConcurrencyResponse(
        limit=policy.concurrency_limit,
        method=policy.concurrency_method,
        parameters=policy.concurrency_parameters,
    )


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    concurrency = values.pop("concurrency", {})
    scope = values.pop("scope", None)
    for name, value in concurrency.items():
        if value is not None:
            values[f"concurrency_{name}"] = value
    if scope is not None:
        named = {name: scope.get(name) for name in ("pack_ref", "action_ref")}
        kind = scope_type_of(scope.get("type"), **named)
        values["scope_type"] = kind
        values["scope_ref"] = named.get(f"{kind}_ref")
    return values
