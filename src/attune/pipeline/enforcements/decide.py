"""What an enforcement comes to. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from attune.expressions.errors import ExpressionError
from attune.kernel.errors import AttuneError
from attune.kernel.ids import ExecutionId
from attune.pipeline.enforcements.model import Enforcement, EnforcementStatus
from attune.pipeline.executions.actions import KnownAction
from attune.pipeline.executions.decide import new_execution
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.rules.decide import Scope, parameters
from attune.pipeline.rules.model import CompiledRule


@dataclass(frozen=True, slots=True)
class Resolution:
    enforcement: Enforcement
    execution: Execution | None


def resolve(
    enforcement: Enforcement,
    rule: CompiledRule,
    action: KnownAction | None,
    scope: Scope,
    *,
    execution_id: ExecutionId,
    now: datetime,
) -> Resolution:
    """An execution of the rule's action; or none, with the reason.

    A rule that was disabled, edited or deleted since it matched is taken as it is now.
    """
    if not rule.rule.enabled:
        return disabled(enforcement, "The rule is disabled.", now)
    if action is None:
        return disabled(enforcement, f"There is no action {rule.rule.action_ref}.", now)
    try:
        rendered = parameters(rule, scope)
        request = _request(enforcement, rule, rendered.values)
        execution = new_execution(
            request, action.action, action.definition, action.schema, id=execution_id, now=now
        )
    except (ExpressionError, AttuneError) as error:
        return disabled(enforcement, f"The action's parameters do not fit: {error}", now)
    warnings = [f"{name} has no value" for name in rendered.missing]
    processed = msgspec.structs.replace(
        enforcement,
        status=EnforcementStatus.PROCESSED,
        config=action.schema.redact(execution.config),
        warnings=warnings or None,
        resolved_at=now,
        updated=now,
    )
    return Resolution(processed, execution)


def disabled(enforcement: Enforcement, reason: str, now: datetime) -> Resolution:
    changed = msgspec.structs.replace(
        enforcement,
        status=EnforcementStatus.DISABLED,
        reason=reason,
        resolved_at=now,
        updated=now,
    )
    return Resolution(changed, None)


def _request(enforcement: Enforcement, rule: CompiledRule, values: dict[str, Any]) -> Request:
    return Request(
        action_ref=rule.rule.action_ref,
        parameters=values,
        executor=rule.rule.owner_identity,
        enforcement=enforcement.id,
        rule_ref=rule.rule.ref,
        trigger_ref=enforcement.trigger_ref,
        permission_set_refs=rule.rule.permission_set_refs,
    )
