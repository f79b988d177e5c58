"""policies/*.yaml. `action_ref` or `pack_ref` may stand at the top in place of a scope."""

from collections.abc import Mapping
from typing import Any, Final

from attune.catalog.policy_gates import GATES, LARGEST, Faults
from attune.catalog.policy_rules import (
    NO_GATES,
    columns_of,
    document_faults,
    policy_faults,
    settled,
)
from attune.catalog.refs import label_from, member_ref_fault, pack_part
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import PolicySource

_REFS: Final = ("action_ref", "pack_ref")


def read_policy(fields: Fields, pack_ref: str) -> PolicySource:
    ref = fields.member_ref(pack_ref, _in_full(fields.required_text("ref"), pack_ref))
    found = PolicySource(
        file=fields.file,
        ref=ref,
        name=fields.text("name", "label") or label_from(ref),
        description=fields.optional_text("description"),
        enabled=fields.boolean("enabled", default=True),
        priority=fields.integer("priority", least=-LARGEST - 1, default=0) or 0,
        tags=fields.texts("tags"),
        **_columns(fields, pack_ref),
    )
    fields.finish()
    return found


def _columns(fields: Fields, pack_ref: str) -> dict[str, Any]:
    """Those of scope and gates; empty ones where a fault was noted, so that reading can go on."""
    written = {name: fields.raw(name) for name in ("concurrency", *GATES)}
    written = {name: value for name, value in written.items() if value is not None}
    written["scope"] = _scope(fields, pack_ref)
    found = document_faults(written)
    if not found:
        columns = {**NO_GATES, **settled(columns_of(written), {})}
        found = _ref_faults(columns) or policy_faults({"priority": 0, **columns})
        if not found:
            return columns
    for field, rule in found.items():
        fields.fault(_place(fields, field), rule)
    return {**NO_GATES, "scope_type": "global", "scope_ref": None}


def _scope(fields: Fields, pack_ref: str) -> Any:
    at_top = {name: value for name in _REFS if (value := fields.raw(name)) is not None}
    scope = fields.raw("scope")
    if scope is not None and at_top:
        fields.fault("scope", "says what action_ref or pack_ref says; write one of them")
    if scope is None:
        scope = at_top or {"type": "action"}
    if isinstance(scope, dict) and isinstance(ref := scope.get("action_ref"), str):
        return {**scope, "action_ref": _in_full(ref, pack_ref)}
    return scope


def _ref_faults(columns: Mapping[str, Any]) -> Faults:
    ref = columns["scope_ref"]
    if columns["scope_type"] != "action":
        return {}
    rule = member_ref_fault(ref, pack_part(ref))
    return {"scope.action_ref": rule} if rule else {}


def _place(fields: Fields, field: str) -> str:
    """Where the file has what a scope says."""
    return field if fields.raw("scope") is not None else field.removeprefix("scope.")


def _in_full(ref: str, pack_ref: str) -> str:
    return f"{pack_ref}.{ref}" if ref and "." not in ref else ref
