"""What is written of an execution is what its model describes."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from attune.api.answers import Answer
from attune.api.execution_models import ExecutionResponse
from attune.api.execution_views import ExecutionViews
from attune.catalog.definitions import Definitions
from attune.catalog.retrying import Cause, Retries, Retry
from attune.kernel.ids import ActionDefinitionId, ActionId, ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.executions.queries import ExecutionDetail

NOON = datetime(2026, 11, 18, 12, 0, 0, 120, UTC)
BARE: dict[str, Any] = {
    "id": ExecutionId(7),
    "action": ActionId(3),
    "action_ref": "shop.ship",
    "definition": ActionDefinitionId(1),
    "status": ExecutionStatus.REQUESTED,
    "created": NOON,
    "updated": NOON,
}
FULL: dict[str, Any] = {
    **BARE,
    "status": ExecutionStatus.FAILED,
    "failure": "failed",
    "attempt": 2,
    "priority": Priority.CRITICAL,
    "parent": ExecutionId(1),
    "started_at": NOON,
    "timeout_seconds": 5,
    "idempotency_key": "once",
    "trace_tag": "t",
    "permission_set_refs": ["core.reader"],
    "worker_selector": {"zone": "a"},
    "worker_tolerations": [{"key": "gpu"}],
    "worker_affinity": {"preferred": []},
    "workflow_task": {"task": "one"},
    "retry": Retries(max_retries=3, how=Retry(delay=1.5, on=(Cause.TIMEOUT,))),
    "env_vars": {"TOKEN": "hidden"},
    "config": {"token": "hidden", "card": {"number": "hidden", "owner": "Ada"}, "n": 1},
    "result": {"error": "ü"},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "token": {"type": "string", "secret": True},
        "card": {"type": "object", "properties": {"number": {"type": "string", "secret": True}}},
    },
}


class _Definition(msgspec.Struct):
    param_schema: dict[str, Any]


class _Rows:
    """A database whose one definition has a secret, and another inside of an object."""

    async def read(self, _step: Any, ids: set[ActionDefinitionId]) -> Any:
        return dict.fromkeys(ids, _Definition(SCHEMA))


def views() -> ExecutionViews:
    return ExecutionViews(_Rows(), Definitions())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "execution",
    [
        Execution(**BARE),
        Execution(**FULL),
        ExecutionDetail(**BARE, reason="concurrency"),
    ],
)
async def test_what_is_written_of_an_execution_is_what_its_model_describes(
    execution: Execution,
) -> None:
    answer = await views().one(execution, 201)
    written = bytes(answer.body)
    described = Answer[ExecutionResponse].model_validate_json(written, strict=True)
    assert msgspec.json.decode(written) == msgspec.json.decode(described.model_dump_json())
    assert (answer.status_code, answer.media_type) == (201, "application/json")


async def test_nothing_that_is_secret_is_written_at_any_depth() -> None:
    answer = await views().all([Execution(**FULL), Execution(**FULL)])
    assert b"hidden" not in bytes(answer.body)
    assert bytes(answer.body).count(b"Ada") == 2
