"""Whether a request can be run, and as what. Pure."""

from datetime import datetime
from typing import Any

import msgspec

from attune.catalog.model import Action
from attune.catalog.placement import Affinity, Needs, Toleration
from attune.catalog.retrying import Retries, Retry
from attune.catalog.schemas import ParameterSchema
from attune.kernel.errors import Conflict, InvalidInput
from attune.kernel.ids import ActionDefinitionId, ExecutionId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.model import Execution, Request


def new_execution(
    request: Request,
    action: Action,
    definition: ActionDefinitionId,
    schema: ParameterSchema,
    *,
    id: ExecutionId,  # noqa: A002 - the field's name
    now: datetime,
    field: str = "",
) -> Execution:
    """`InvalidInput` names each parameter that does not fit; `field` is where they stand in a body."""
    if not action.enabled:
        raise Conflict(f"The action '{action.ref}' is disabled.", ref=action.ref)
    if request.timeout_seconds is not None and not request.timeout_seconds > 0:
        raise InvalidInput("timeout_seconds: must be above 0", field="timeout_seconds")
    if request.max_retries is not None and request.max_retries < 0:
        raise InvalidInput("max_retries: must be 0 or more", field="max_retries")
    return Execution(
        id=id,
        action=action.id,
        action_ref=action.ref,
        definition=definition,
        status=ExecutionStatus.REQUESTED,
        priority=request.priority,
        parent=request.parent,
        enforcement=request.enforcement,
        rule_ref=request.rule_ref,
        trigger_ref=request.trigger_ref,
        executor=request.executor,
        timeout_seconds=request.timeout_seconds or action.timeout_seconds,
        idempotency_key=request.idempotency_key,
        trace_tag=request.trace_tag,
        permission_set_refs=_permission_sets(request, action),
        worker_selector=_placement(request.worker_selector, action.worker_selector),
        worker_tolerations=_placement(request.worker_tolerations, action.worker_tolerations),
        worker_affinity=_placement(request.worker_affinity, action.worker_affinity),
        retry=_retries(request, action),
        env_vars=request.env_vars or None,
        config=schema.check(request.parameters, field=field),
        created=now,
        updated=now,
    )


def needs_of(execution: Execution) -> Needs | None:
    """What it asks of a worker; null for nothing."""
    if not (execution.worker_selector or execution.worker_tolerations or execution.worker_affinity):
        return None
    return Needs(
        selector=execution.worker_selector or {},
        tolerations=msgspec.convert(execution.worker_tolerations or (), tuple[Toleration, ...]),
        affinity=msgspec.convert(execution.worker_affinity or {}, Affinity),
    )


def unrun_result(error: str) -> dict[str, Any]:
    """In the shape of every result, for an execution that no process was started for."""
    return {
        "exit_code": None,
        "duration_ms": 0,
        "succeeded": False,
        "stdout": "",
        "stderr": "",
        "data": None,
        "error": error,
    }


def failure_word(status: ExecutionStatus) -> str | None:
    """What the column `failure` holds for an execution in that status."""
    return status.value if status in TERMINAL and status is not ExecutionStatus.COMPLETED else None


def _retries(request: Request, action: Action) -> Retries | None:
    """What the request says, else what the action says; null where a failure is the end."""
    most = action.max_retries if request.max_retries is None else request.max_retries
    return Retries(max_retries=most, how=request.retry or action.retry or Retry()) if most else None


def _permission_sets(request: Request, action: Action) -> list[str] | None:
    if request.permission_set_refs is not None:
        return request.permission_set_refs
    return action.default_execution_permission_set_refs or None


def _placement(asked: Any, usual: Any) -> Any:
    """What the request says, else what the action says; null where neither wants anything."""
    return asked if asked is not None else (usual or None)
