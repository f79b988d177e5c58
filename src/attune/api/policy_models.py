"""Bodies and answers of /policies, under the names of the contract; inside, the same are columns of one row."""

from datetime import datetime
from typing import Annotated, Any, Final

import pydantic
from pydantic import Field, StrictInt

from attune.api.fields import Filled, Ref, changed, given
from attune.api.policy_parts import Blackouts, Concurrency, Quotas, RateLimit, Scope, Windows
from attune.catalog.model import Policy
from attune.catalog.policy_gates import AUTO, LARGEST
from attune.catalog.policy_rules import PARTS, columns_of, document_faults
from attune.kernel.errors import InvalidInput

Priority = Annotated[
    StrictInt,
    Field(ge=-LARGEST - 1, le=LARGEST, description="Of several, the highest is in effect."),
]

_CLEARABLE: Final = ("concurrency", "rate_limit")
_MADE_HERE: Final = ("scope", "concurrency", "shadowed_by")


class PolicyResponse(pydantic.BaseModel):
    """`pack` and `pack_ref` are what it belongs to, `scope` is what it is about.

    `shadowed_by` is the ref of the enabled policy over the same scope that goes before this one: while it is
    there, this one has no effect.
    """

    id: int
    ref: str
    pack: int | None
    pack_ref: str | None
    name: str
    description: str | None
    enabled: bool
    priority: int
    scope: Scope
    concurrency: Concurrency | None
    rate_limit: RateLimit | None
    quotas: Quotas
    windows: Windows
    blackouts: Blackouts
    tags: list[str]
    is_adhoc: bool
    shadowed_by: str | None
    created: datetime
    updated: datetime


class _PolicyFields(pydantic.BaseModel):
    name: Filled | None = None
    description: str | None = None
    enabled: bool | None = None
    priority: Priority | None = None
    concurrency: Concurrency | None = None
    rate_limit: RateLimit | None = None
    quotas: Quotas | None = None
    windows: Windows | None = None
    blackouts: Blackouts | None = None
    tags: list[str] | None = None


class CreatePolicyRequest(_PolicyFields):
    ref: Ref
    scope: Scope
    pack_ref: Ref | None = Field(
        default=None, description="What it belongs to; the pack that its ref begins with."
    )


class UpdatePolicyRequest(_PolicyFields):
    """A null takes `concurrency` or `rate_limit` away, an empty list the others."""

    scope: Scope | None = None


def new_values(body: CreatePolicyRequest) -> dict[str, Any]:
    return _columns(given(body), is_change=False)


def changed_values(body: UpdatePolicyRequest | None) -> dict[str, Any]:
    """A part of `concurrency` that is not named stays as it is."""
    return _columns(changed(body, _CLEARABLE), is_change=True)


def policy_response(policy: Policy, shadowed_by: str | None) -> PolicyResponse:
    refs = dict.fromkeys(("pack_ref", "action_ref"))
    if policy.scope_ref is not None:
        refs[f"{policy.scope_type}_ref"] = policy.scope_ref
    return PolicyResponse(
        scope={"type": policy.scope_type, **refs},
        concurrency=_concurrency_of(policy),
        shadowed_by=shadowed_by,
        **{name: getattr(policy, name) for name in _PLAIN},
    )


_PLAIN: Final = [name for name in PolicyResponse.model_fields if name not in _MADE_HERE]


def _concurrency_of(policy: Policy) -> dict[str, Any] | None:
    others = {"method": policy.concurrency_method, "parameters": policy.concurrency_parameters}
    if policy.concurrency_ceiling is not None:
        floor, ceiling = policy.concurrency_floor, policy.concurrency_ceiling
        return {"limit": AUTO, "floor": floor, "ceiling": ceiling, **others}
    if policy.concurrency_limit is None:
        return None
    return {"limit": policy.concurrency_limit, **others}


def _columns(values: dict[str, Any], *, is_change: bool) -> dict[str, Any]:
    """`InvalidInput` names every field of a part that breaks a rule."""
    parts = {name: values.pop(name) for name in PARTS if name in values}
    problems = document_faults(parts, is_change=is_change)
    if problems:
        text = "; ".join(f"{field}: {rule}" for field, rule in problems.items())
        raise InvalidInput(text, field=next(iter(problems)), problems=problems)
    return {**values, **columns_of(parts)}
