"""What becomes of an execution whose worker is gone."""

import msgspec
import pytest

from attune.catalog.model import ActionDefinition
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.decide import fate_of
from attune.pipeline.completion.model import Fate, Held

S = ExecutionStatus


def definition(**fields: object) -> ActionDefinition:
    usual: dict[str, object] = {
        "action_ref": "a.b",
        "pack_ref": "a",
        "pack_version": "1",
        "pack_dir": None,
        "entrypoint": "",
        "is_inline": False,
        "runtime_ref": None,
        "runtime_version_constraint": None,
        "execution_config": {},
        "param_schema": None,
        "out_schema": None,
        "parameter_delivery": "stdin",
        "parameter_format": "json",
        "output_format": "text",
        "timeout_seconds": None,
        "max_retries": 0,
        "on_worker_lost": "retry",
    }
    return msgspec.convert({**usual, **fields}, ActionDefinition)


def held(status: ExecutionStatus, attempt: int = 1) -> Held:
    values = {"execution": 1, "lane": 1, "attempt": attempt, "status": status, "worker": 1}
    return msgspec.convert({**values, "definition": 1}, Held)


@pytest.mark.parametrize(
    ("status", "attempt", "fields", "fate"),
    [
        (S.SCHEDULED, 1, {}, Fate.AGAIN),
        (S.SCHEDULED, 1, {"on_worker_lost": "fail"}, Fate.ABANDONED),
        (S.RUNNING, 1, {}, Fate.ABANDONED),
        (S.RUNNING, 1, {"max_retries": 1}, Fate.AGAIN),
        (S.RUNNING, 2, {"max_retries": 1}, Fate.ABANDONED),
        (S.RUNNING, 1, {"max_retries": 5, "on_worker_lost": "fail"}, Fate.ABANDONED),
        (S.CANCELING, 1, {"max_retries": 5}, Fate.CANCELLED),
    ],
)
def test_it_runs_again_only_where_nobody_saw_it_run_or_attempts_remain(
    status: ExecutionStatus, attempt: int, fields: dict[str, object], fate: Fate
) -> None:
    assert fate_of(held(status, attempt), definition(**fields)) is fate
