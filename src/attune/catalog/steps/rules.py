"""Rules made by hand, and changes to any."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.model import Action, Rule, Trigger
from attune.catalog.refs import check_member_ref
from attune.catalog.rows import ACTIONS, PACKS, RULES, TRIGGERS, Kind
from attune.catalog.rule_texts import condition_fault, conditions_as_object, template_fault
from attune.catalog.schemas import compile_schema
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import IdentityId, RuleId
from attune.store.database import Tx


class NewRule(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    pack_ref: str
    label: str
    trigger_ref: str
    action_ref: str
    description: str | None = None
    enabled: bool = True
    trigger_params: dict[str, Any] = {}
    conditions: dict[str, Any] | list[Any] = {}
    action_params: dict[str, Any] = {}
    strict: bool = False
    permission_set_refs: list[str] | None = None
    owner_identity: IdentityId | None = None


class RuleChanges(msgspec.Struct, frozen=True, kw_only=True):
    label: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    trigger_ref: str | UnsetType = UNSET
    trigger_params: dict[str, Any] | UnsetType = UNSET
    conditions: dict[str, Any] | list[Any] | UnsetType = UNSET
    action_ref: str | UnsetType = UNSET
    action_params: dict[str, Any] | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    permission_set_refs: list[str] | UnsetType | None = UNSET


async def create_rule(tx: Tx, new: NewRule, now: datetime) -> Rule:
    """An unknown pack, trigger or action is `NotFound`; parameters that do not fit are `InvalidInput`."""
    check_member_ref(new.ref, new.pack_ref)
    values = _checked(msgspec.structs.asdict(new))
    pack = await rows.get(tx, PACKS, new.pack_ref)
    values |= await _target(tx, TRIGGERS, values["trigger_ref"], values["trigger_params"])
    values |= await _target(tx, ACTIONS, values["action_ref"], values["action_params"])
    number = RuleId(await rows.next_id(tx, RULES))
    rule = Rule(id=number, pack=pack.id, is_adhoc=True, created=now, updated=now, **values)
    return await rows.add(tx, RULES, rule)


async def update_rule(tx: Tx, key: str | int, changes: RuleChanges, now: datetime) -> Rule:
    values = _checked(given(changes))
    rule = await rows.get(tx, RULES, key)
    for kind, ref, parameters in (
        (TRIGGERS, "trigger_ref", "trigger_params"),
        (ACTIONS, "action_ref", "action_params"),
    ):
        if ref in values or parameters in values:
            now_named = values.get(ref, getattr(rule, ref))
            now_given = values.get(parameters, getattr(rule, parameters))
            values |= await _target(tx, kind, now_named, now_given)
    return await rows.change(tx, RULES, rule, values, now)


async def delete_rule(tx: Tx, key: str | int) -> Rule:
    rule = await rows.get(tx, RULES, key)
    await rows.remove(tx, RULES, rule)
    return rule


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    check_fields(values)
    if "conditions" in values:
        values["conditions"] = conditions_as_object(values["conditions"])
        if values["conditions"] is None:
            raise InvalidInput("conditions: must be an object or a list", field="conditions")
        if wrong := condition_fault(values["conditions"]):
            raise wrong
    if wrong := template_fault(values.get("action_params", {}), "action_params"):
        raise wrong
    return values


async def _target(
    tx: Tx, kind: Kind[Trigger] | Kind[Action], key: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    """The id and ref of what a rule names, once the parameters were found to fit it.

    What is saved is what was written: defaults are filled in when the rule fires.
    """
    target: Trigger | Action = await rows.get(tx, kind, key)  # type: ignore[arg-type]
    schema = compile_schema(target.param_schema)
    schema.check(parameters, templates=True, field=f"{kind.noun}_params")
    return {kind.noun: target.id, f"{kind.noun}_ref": target.ref}
