"""Actions made by hand, and changes to any."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog import rows
from attune.catalog.links import relink
from attune.catalog.model import Action
from attune.catalog.refs import check_member_ref
from attune.catalog.retry_rules import limits_of, retry_of
from attune.catalog.retrying import Limits, Retry
from attune.catalog.rows import ACTIONS, PACKS, RUNTIMES
from attune.catalog.steps.checks import check_fields, given
from attune.kernel.ids import ActionId, RuntimeId
from attune.store.database import Tx


class NewAction(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime is named by ref or id; the ref goes first. Without one it cannot run, but may be defined."""

    ref: str
    pack_ref: str
    label: str
    entrypoint: str = ""
    description: str | None = None
    runtime: RuntimeId | None = None
    runtime_ref: str | None = None
    runtime_version_constraint: str | None = None
    required_worker_runtimes: dict[str, Any] = {}
    param_schema: dict[str, Any] | None = None
    out_schema: dict[str, Any] | None = None
    parameter_delivery: str = "stdin"
    parameter_format: str = "json"
    output_format: str = "text"
    timeout_seconds: int | None = None
    max_retries: int = 0
    on_worker_lost: str = "retry"
    retry: dict[str, Any] | Retry | None = None
    limits: dict[str, Any] | Limits | None = None
    reuse: bool = False
    worker_selector: dict[str, Any] = {}
    worker_tolerations: list[Any] = []
    worker_affinity: dict[str, Any] = {}
    default_execution_permission_set_refs: list[str] = []
    accesses_mcp: bool = False
    tags: list[str] = []


class ActionChanges(msgspec.Struct, frozen=True, kw_only=True):
    label: str | UnsetType = UNSET
    entrypoint: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    runtime: RuntimeId | UnsetType | None = UNSET
    runtime_ref: str | UnsetType | None = UNSET
    runtime_version_constraint: str | UnsetType | None = UNSET
    required_worker_runtimes: dict[str, Any] | UnsetType = UNSET
    param_schema: dict[str, Any] | UnsetType | None = UNSET
    out_schema: dict[str, Any] | UnsetType | None = UNSET
    parameter_delivery: str | UnsetType = UNSET
    parameter_format: str | UnsetType = UNSET
    output_format: str | UnsetType = UNSET
    timeout_seconds: int | UnsetType | None = UNSET
    max_retries: int | UnsetType = UNSET
    on_worker_lost: str | UnsetType = UNSET
    retry: dict[str, Any] | Retry | UnsetType | None = UNSET
    limits: dict[str, Any] | Limits | UnsetType | None = UNSET
    reuse: bool | UnsetType = UNSET
    worker_selector: dict[str, Any] | UnsetType = UNSET
    worker_tolerations: list[Any] | UnsetType = UNSET
    worker_affinity: dict[str, Any] | UnsetType = UNSET
    default_execution_permission_set_refs: list[str] | UnsetType = UNSET
    accesses_mcp: bool | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET


async def create_action(tx: Tx, new: NewAction, now: datetime) -> Action:
    values = msgspec.structs.asdict(new)
    check_member_ref(new.ref, new.pack_ref)
    check_fields(values)
    _read_shapes(values)
    pack = await rows.get(tx, PACKS, new.pack_ref)
    await _resolve_runtime(tx, values)
    number = ActionId(await rows.next_id(tx, ACTIONS))
    action = Action(id=number, pack=pack.id, is_adhoc=True, created=now, updated=now, **values)
    await rows.add(tx, ACTIONS, action)
    await relink(tx, ACTIONS.noun, [action.ref])
    return action


async def update_action(tx: Tx, key: str | int, changes: ActionChanges, now: datetime) -> Action:
    values = given(changes)
    check_fields(values)
    _read_shapes(values)
    if "runtime" in values or "runtime_ref" in values:
        await _resolve_runtime(tx, values)
    return await rows.change(tx, ACTIONS, await rows.get(tx, ACTIONS, key), values, now)


async def delete_action(tx: Tx, key: str | int) -> Action:
    """Rules keep its ref; what runs or waits runs to its end."""
    action = await rows.get(tx, ACTIONS, key)
    await rows.remove(tx, ACTIONS, action)
    return action


def _read_shapes(values: dict[str, Any]) -> None:
    """What was checked, as the row holds it."""
    for name, read in (("retry", retry_of), ("limits", limits_of)):
        if name in values:
            values[name] = read(values[name])


async def _resolve_runtime(tx: Tx, values: dict[str, Any]) -> None:
    """Makes `runtime` and `runtime_ref` name the same one."""
    key = values.get("runtime_ref") or values.get("runtime")
    found = await rows.get(tx, RUNTIMES, key) if key else None
    values["runtime"] = found.id if found else None
    values["runtime_ref"] = found.ref if found else None
