"""policies/*.yaml. `action_ref` or `pack_ref` may stand at the top in place of a scope."""

from typing import Any, Final

from attune.catalog.policy_rules import (
    GATES,
    LARGEST,
    METHODS,
    SCOPES,
    scope_type_of,
    without_effect,
)
from attune.catalog.refs import label_from, member_ref_fault, pack_part
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import PolicySource

_NOT_LOADED: Final = "the policy is not loaded"


def read_policy(fields: Fields, pack_ref: str) -> PolicySource | None:
    """None for a policy that would have no effect; its author is warned, field by field."""
    ref = fields.member_ref(pack_ref, _in_full(fields.required_text("ref"), pack_ref))
    scope_type, scope_ref = _scope(fields, pack_ref)
    concurrency = _concurrency(fields)
    found = PolicySource(
        file=fields.file,
        ref=ref,
        name=fields.text("name", "label") or label_from(ref),
        description=fields.optional_text("description"),
        enabled=fields.boolean("enabled", default=True),
        priority=fields.integer("priority", least=-LARGEST - 1, default=0) or 0,
        scope_type=scope_type,
        scope_ref=scope_ref,
        concurrency_limit=concurrency["concurrency_limit"] or 0,
        concurrency_method=concurrency["concurrency_method"],
        tags=fields.texts("tags"),
    )
    gates = {name: fields.raw(name) for name in GATES}
    fields.finish()
    return (
        found if _has_effect(fields, {"scope_type": scope_type, **concurrency, **gates}) else None
    )


def _scope(fields: Fields, pack_ref: str) -> tuple[str, str]:
    """The type and the ref; the ref is empty where there is none, or where that was noted as a fault."""
    at_top = {name: fields.optional_text(name) for name in ("action_ref", "pack_ref")}
    if fields.raw("scope") is None:
        if not any(at_top.values()):
            fields.fault("action_ref", "is required")
            return "action", ""
        return _scope_of(fields, "action_ref", at_top, None, pack_ref)
    if any(at_top.values()):
        fields.fault("scope", "says what action_ref or pack_ref says; write one of them")
    scope = fields.inner("scope")
    inside = {name: scope.optional_text(name) for name in at_top}
    word = scope.choice("type", SCOPES, "action") if scope.raw("type") is not None else None
    scope.finish()
    return _scope_of(fields, "scope.action_ref", inside, word, pack_ref)


def _scope_of(
    fields: Fields, place: str, named: dict[str, str | None], word: str | None, pack_ref: str
) -> tuple[str, str]:
    kind = scope_type_of(word, **named)
    if kind != "action":
        return kind, ""
    ref = _in_full(named["action_ref"] or "", pack_ref)
    if rule := member_ref_fault(ref, pack_part(ref)) if ref else "is required":
        fields.fault(place, rule)
    return kind, ref


def _concurrency(fields: Fields) -> dict[str, Any]:
    concurrency = fields.inner("concurrency")
    if isinstance(fields.raw("concurrency"), dict) and concurrency.raw("limit") is None:
        concurrency.fault("limit", "is required")
    found = {
        "concurrency_limit": concurrency.integer("limit", least=0),
        "concurrency_method": concurrency.choice("method", METHODS, "enqueue"),
        "concurrency_parameters": concurrency.texts("parameters"),
    }
    concurrency.finish()
    return found


def _has_effect(fields: Fields, values: dict[str, Any]) -> bool:
    found = without_effect(values)
    for field, rule in found.items():
        is_short = field == "scope.type" and fields.raw("scope") is None
        fields.warn("pack_ref" if is_short else field, f"{rule}; {_NOT_LOADED}")
    return not found


def _in_full(ref: str, pack_ref: str) -> str:
    return f"{pack_ref}.{ref}" if ref and "." not in ref else ref
