"""Every action of the guide is one that loads, its requests are accepted, and it names every word that there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attune.api.action_models import UpdateActionRequest, action_changes
from attune.api.execution_models import ExecuteRequest
from attune.catalog.retry_rules import BACKOFFS, CAUSES, PLACES, retry_faults, retry_of
from attune.catalog.retrying import Limits, Retry
from attune.catalog.runners import ON_WORKER_LOST
from attune.catalog.steps.checks import check_fields
from attune.kernel.ids import ExecutionId
from attune.pipeline.completion.decide import delay_before
from tests.unit.catalog.packs import ACTION, SHOP, parsed

GUIDE = (Path(__file__).parents[2] / "docs/guides/retries.md").read_text()
FILES = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
BODIES = re.findall(r"-X (\w+) \$URL(\S+) .*?-d '(.*?)'", GUIDE, re.DOTALL)
DELAYS = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", GUIDE, re.MULTILINE)
WORDS = {*Retry.__struct_fields__, *Limits.__struct_fields__, *BACKOFFS, *CAUSES, *PLACES, *ON_WORKER_LOST}  # fmt: skip


@pytest.mark.parametrize("text", FILES, ids=lambda text: text.partition("\n")[0])
def test_every_action_of_the_guide_loads_without_a_warning(text: str) -> None:
    whole = text if text.startswith("ref:") else ACTION + text
    pack = parsed({**SHOP, "actions/ship.yaml": whole})
    [action] = pack.actions
    assert pack.warnings == ()
    assert action.retry or action.limits or action.on_worker_lost == "fail"


@pytest.mark.parametrize("word", sorted(WORDS))
def test_the_guide_shows_every_word_that_there_is(word: str) -> None:
    assert re.search(rf"`[\w.]*\b{word}\b[^`\n]*`", GUIDE)


def test_the_guide_s_delays_are_those_that_executions_wait() -> None:
    assert [backoff for backoff, *_ in DELAYS] == list(BACKOFFS)
    for backoff, *shown in DELAYS:
        how = retry_of({"delay": 10, "max_delay": 60, "backoff": backoff})
        assert how is not None
        waits = [delay_before(how, number, ExecutionId(1)) for number in (1, 2, 3, 4)]
        assert waits == [float(each) for each in shown]


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
def test_the_guide_s_requests_are_accepted(method: str, path: str, body: str) -> None:
    sent: dict[str, Any] = json.loads(body)
    if path.endswith("/execute"):
        asked = ExecuteRequest.model_validate(sent)
        assert (method, asked.max_retries, retry_faults(asked.retry)) == ("POST", 5, {})
    else:
        changes = action_changes(UpdateActionRequest.model_validate(sent))
        assert (method, changes) == ("PUT", sent)
        check_fields(changes)


def test_the_guide_has_a_request_for_each_way() -> None:
    assert [method for method, *_ in BODIES] == ["POST", "PUT"]
