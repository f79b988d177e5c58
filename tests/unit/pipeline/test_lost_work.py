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
        "on_worker_lost": "retry",
    }
    return msgspec.convert({**usual, **fields}, ActionDefinition)


def held(status: ExecutionStatus, most: int = 0, **fields: object) -> Held:
    values = {"execution": 1, "lane": 1, "attempt": 1, "status": status, "worker": 1}
    retry = {"max_retries": most} if most else None
    return msgspec.convert({**values, "definition": 1, "retry": retry, **fields}, Held)


@pytest.mark.parametrize(
    ("one", "rule", "fate"),
    [
        (held(S.SCHEDULED), "retry", Fate.AGAIN),
        (held(S.SCHEDULED), "fail", Fate.ABANDONED),
        (held(S.SCHEDULED, losses=5), "retry", Fate.ABANDONED),
        (held(S.RUNNING), "retry", Fate.ABANDONED),
        (held(S.RUNNING, 1), "retry", Fate.AGAIN),
        (held(S.RUNNING, 1, retries=1), "retry", Fate.ABANDONED),
        (held(S.RUNNING, 1, losses=4), "retry", Fate.AGAIN),
        (held(S.RUNNING, 5), "fail", Fate.ABANDONED),
        (held(S.CANCELING, 5), "retry", Fate.CANCELLED),
    ],
)
def test_it_runs_again_only_where_nobody_saw_it_run_or_retries_remain(
    one: Held, rule: str, fate: Fate
) -> None:
    assert fate_of(one, definition(on_worker_lost=rule)) is fate


def test_a_retry_that_is_not_wanted_after_a_loss_is_not_made() -> None:
    retry = {"max_retries": 5, "how": {"on": ["failed"]}}
    one = held(S.RUNNING, retry=retry)
    assert fate_of(one, definition()) is Fate.ABANDONED
