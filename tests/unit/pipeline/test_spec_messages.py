"""The specification's tests of what workers say and of a rule that is off, under its names."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from attune.catalog.model import Rule
from attune.kernel.ids import (
    ActionId,
    EnforcementId,
    ExecutionId,
    PackId,
    RuleId,
    TriggerId,
    WorkerId,
)
from attune.kernel.messages import ExecutionCompleted, ExecutionScheduled, ExecutionStatusChanged
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.enforcements.decide import resolve
from attune.pipeline.enforcements.model import Enforcement, EnforcementStatus
from attune.pipeline.rules.model import CompiledRule

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
S = ExecutionStatus


def on_the_wire(item: msgspec.Struct) -> dict[str, Any]:
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(item))
    return written


def test_execution_completed_payload_structure() -> None:
    item = ExecutionCompleted(
        execution_id=ExecutionId(1),
        action_id=ActionId(2),
        action_ref="core.echo",
        status=S.COMPLETED,
        completed_at=NOW,
        result=msgspec.Raw(b'{"output":"hi"}'),
    )
    assert on_the_wire(item) == {
        "execution_id": 1,
        "action_id": 2,
        "action_ref": "core.echo",
        "status": "completed",
        "result": {"output": "hi"},
        "completed_at": "2026-01-01T12:00:00Z",
    }


def test_execution_status_payload_structure() -> None:
    item = ExecutionStatusChanged(
        execution_id=ExecutionId(1), status=S.RUNNING, old_status=S.SCHEDULED, attempt=2
    )
    assert on_the_wire(item) == {
        "execution_id": 1,
        "status": "running",
        "old_status": "scheduled",
        "attempt": 2,
    }


def test_execution_scheduled_payload_structure() -> None:
    item = ExecutionScheduled(
        execution_id=ExecutionId(1), worker_id=WorkerId(3), attempt=1, action_ref="core.echo"
    )
    assert on_the_wire(item) == {
        "execution_id": 1,
        "worker_id": 3,
        "attempt": 1,
        "action_ref": "core.echo",
    }


@pytest.mark.parametrize("status", [S.COMPLETED, S.FAILED, S.TIMEOUT, S.CANCELLED, S.ABANDONED])
def test_status_format_for_completion(status: ExecutionStatus) -> None:
    item = ExecutionCompleted(
        execution_id=ExecutionId(1),
        action_id=ActionId(2),
        action_ref="core.echo",
        status=status,
        completed_at=NOW,
    )
    word = on_the_wire(item)["status"]
    assert word == status.name.lower()
    assert msgspec.json.decode(msgspec.json.encode(item), type=ExecutionCompleted) == item


def test_should_create_execution_disabled_rule() -> None:
    """A rule that is off makes no execution, whatever matched before; its enforcement says so."""
    rule = Rule(
        id=RuleId(1),
        ref="shop.on_order",
        pack=PackId(1),
        pack_ref="shop",
        label="On order",
        enabled=False,
        trigger=TriggerId(1),
        trigger_ref="shop.order",
        action=ActionId(1),
        action_ref="core.echo",
        is_adhoc=True,
        created=NOW,
        updated=NOW,
    )
    enforcement = Enforcement(
        id=EnforcementId(1),
        rule=rule.id,
        rule_ref=rule.ref,
        event=None,
        trigger_ref=rule.trigger_ref,
        created=NOW,
        updated=NOW,
    )
    found = resolve(
        enforcement,
        CompiledRule(rule, pack_config={}),
        None,
        {},
        execution_id=ExecutionId(1),
        now=NOW,
    )
    assert found.execution is None
    assert found.enforcement.status is EnforcementStatus.DISABLED
    assert found.enforcement.reason == "The rule is disabled."
