"""rules/*.yaml. A ref without a dot means the pack's own."""

from typing import Any

from attune.catalog.refs import label_from, member_ref_fault, pack_part
from attune.catalog.rule_texts import condition_fault, conditions_as_object, template_fault
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import RuleSource
from attune.expressions.errors import ExpressionError


def read_rule(fields: Fields, pack_ref: str) -> RuleSource:
    ref = fields.member_ref(pack_ref, _in_full(fields.required_text("ref"), pack_ref))
    found = RuleSource(
        file=fields.file,
        ref=ref,
        label=fields.text("label") or label_from(fields.text("name") or ref),
        description=fields.optional_text("description"),
        enabled=fields.boolean("enabled", default=True),
        trigger_ref=_other_ref(fields, "trigger_ref", pack_ref),
        trigger_params=fields.mapping("trigger_params"),
        conditions=_conditions(fields),
        action_ref=_other_ref(fields, "action_ref", pack_ref),
        action_params=_action_params(fields),
        strict=fields.boolean("strict", default=False),
        permission_set_refs=_permission_set_refs(fields),
    )
    fields.finish()
    return found


def _conditions(fields: Fields) -> dict[str, Any]:
    written = fields.raw("conditions")
    found = {} if written is None else conditions_as_object(written)
    if found is None:
        fields.fault("conditions", "must be a mapping or a list of conditions")
    elif wrong := condition_fault(found):
        _note(fields, wrong)
    return found or {}


def _action_params(fields: Fields) -> dict[str, Any]:
    found = fields.mapping("action_params")
    if wrong := template_fault(found, "action_params"):
        _note(fields, wrong)
    return found


def _note(fields: Fields, wrong: ExpressionError) -> None:
    column = "" if wrong.column is None else f", column {wrong.column}"
    fields.fault(f"{wrong.field}{column}", wrong.problem)


def _permission_set_refs(fields: Fields) -> list[str] | None:
    if fields.raw("permission_set_refs") is None:
        return None
    return fields.texts("permission_set_refs")


def _other_ref(fields: Fields, name: str, pack_ref: str) -> str:
    ref = _in_full(fields.required_text(name), pack_ref)
    if ref and (rule := member_ref_fault(ref, pack_part(ref))):
        fields.fault(name, rule)
    return ref


def _in_full(ref: str, pack_ref: str) -> str:
    return f"{pack_ref}.{ref}" if ref and "." not in ref else ref
