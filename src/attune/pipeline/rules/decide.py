"""Whether a rule answers an event, and with which parameters. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from attune.catalog.model import Rule
from attune.expressions.conditions import Verdict, compile_condition
from attune.expressions.errors import ExpressionError
from attune.expressions.templates import compile_template
from attune.pipeline.events.model import Event
from attune.pipeline.rules.model import CompiledRule

Scope = dict[str, Any]


def compiled(rule: Rule, pack_config: dict[str, Any]) -> CompiledRule:
    """A rule is checked when it is saved; one that still cannot be read answers nothing, and says why."""
    try:
        condition = compile_condition(rule.conditions, "conditions")
        template = compile_template(rule.action_params, "action_params")
    except ExpressionError as error:
        return CompiledRule(rule, pack_config, fault=f"The rule cannot be read: {error}")
    return CompiledRule(rule, pack_config, condition, template)


def scope_of(event: Event, now: datetime) -> Scope:
    """What every rule sees of an event; `for_rule` adds what is the rule's own."""
    return {
        "event": {
            "id": event.id,
            "trigger": event.trigger_ref,
            "created": _written(event.created),
            "payload": event.payload,
        },
        "system": {"timestamp": _written(now)},
    }


def for_rule(scope: Scope, rule: CompiledRule) -> Scope:
    return {
        "event": scope["event"],
        "system": {**scope["system"], "rule": rule.rule.ref},
        "pack": {"config": rule.pack_config},
    }


def consider(rule: CompiledRule, event: Event, scope: Scope) -> Verdict:
    if event.rule is not None and event.rule != rule.rule.id:
        return Verdict(matched=False, reason=meant_for_another(event))
    if not rule.rule.enabled:
        return Verdict(matched=False, reason="the rule is disabled")
    if not rule.trigger_enabled:
        return Verdict(matched=False, reason="the trigger is disabled")
    if rule.condition is None:
        return Verdict(matched=False, reason=rule.fault or "the rule has no condition")
    return rule.condition.check(scope)


def meant_for_another(event: Event) -> str:
    """The reason of every rule but the one that the event is bound to."""
    return f"the event is for the rule {event.rule_ref} alone"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The rule's parameters for one event; `missing` are the names that had no value."""

    values: dict[str, Any]
    missing: tuple[str, ...]


def parameters(rule: CompiledRule, scope: Scope) -> Parameters:
    """Raises ExpressionError where a template has no result, or, for a strict rule, a name without a value."""
    if rule.template is None:
        raise ExpressionError(rule.fault or "the rule has no parameters")
    rendered = rule.template.render(scope, strict=rule.rule.strict)
    values = rendered.value if isinstance(rendered.value, dict) else {}
    return Parameters(values, rendered.missing)


def _written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
