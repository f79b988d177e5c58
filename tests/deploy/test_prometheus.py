"""The alerting rules against what /metrics really has; Prometheus is not needed."""

import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi import FastAPI
from pydantic import SecretStr

from attune.api.metrics import metrics_routes
from attune.bus.opening import bus_from
from attune.identities.accounts import Accounts, Registration
from attune.identities.passwords import Passwords
from attune.identities.tokens import Tokens
from attune.kernel.clock import SystemClock
from attune.kernel.configuration import load_settings
from attune.kernel.ids import Ids
from attune.pipeline.alerts.decide import CONDITIONS
from attune.pipeline.alerts.model import ConditionName
from attune.store import migrate
from attune.store.opening import database_from
from tests.contract.api.asgi import Client
from tests.contract.api.parts import api_parts

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "prometheus" / "attune.rules.yaml"
DOCUMENT = (ROOT / "docs" / "operations" / "monitoring.md").read_text()
# What of the language the rules use, beside names of metrics.
WORDS = {
    *("and", "by", "without", "offset"),
    *("absent", "histogram_quantile", "increase", "max", "rate", "sum"),
}
SPEC = {
    "high_execution_timeout_rate": "warning",
    "no_active_workers": "critical",
    "dlq_buildup": "warning",
    "stale_executions": "warning",
}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(FILE.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def names_in(expression: str) -> set[str]:
    """Metrics that it asks for: without labels, ranges, strings and what groups."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without)\s*\([^)]*\)", "", expression)
    return set(re.findall(r"[a-z_][a-z_0-9]*", re.sub(r"\b\d+[smhd]?\b", "", bare))) - WORDS


def labels_in(expression: str) -> set[str]:
    chosen = re.findall(r"(\w+)=", "".join(re.findall(r"\{[^}]*\}", expression)))
    grouped = re.findall(r"\b(?:by|without)\s*\(([^)]*)\)", expression)
    return set(chosen) | {word.strip() for each in grouped for word in each.split(",")}


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[str]:
    """What an installation shows that has just been founded."""
    settings = load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})
    await migrate.upgrade(settings.database_url)
    clock, source = SystemClock(), random.Random(1)
    database = database_from(settings, clock, source)
    await database.open()
    accounts = Accounts(
        database=database,
        passwords=Passwords(time_cost=1, memory_kib=64),
        tokens=Tokens(SecretStr("a secret of the tests"), clock, Ids(source)),
        clock=clock,
        registration=Registration(is_open=True),
    )
    app = FastAPI()
    parts = api_parts(accounts, bus_from(settings.message_queue, clock, source), tmp_path)
    app.include_router(metrics_routes(parts))
    yield (await Client(app).get("/metrics")).raw.decode()
    await database.close()


def families(shown: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", shown, re.MULTILINE))


def test_the_file_has_the_form_that_prometheus_reads() -> None:
    document = yaml.safe_load(FILE.read_text())
    assert set(document) == {"groups"}
    names = [group["name"] for group in document["groups"]]
    assert len(names) == len(set(names))
    for group in document["groups"]:
        assert set(group) == {"name", "rules"}
    alerts = [rule["alert"] for rule in rules()]
    assert len(alerts) == len(set(alerts))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_is_whole_and_its_page_tells_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert re.fullmatch(r"[a-z_]+", rule["alert"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    place, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (ROOT / place).is_file()
    assert anchor == rule["alert"]
    assert f"\n### {anchor}\n" in DOCUMENT


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
async def test_a_rule_asks_for_metrics_and_labels_that_there_are(
    rule: dict[str, Any], shown: str
) -> None:
    lines = [line for line in shown.splitlines() if not line.startswith("#")]
    there = {re.split(r"[{ ]", line)[0] for line in lines}
    wanted = names_in(rule["expr"])
    assert wanted
    assert wanted <= there
    some = "\n".join(line for line in lines if re.split(r"[{ ]", line)[0] in wanted)
    for label in labels_in(rule["expr"]):
        assert f'{label}="' in some
    for label, value in re.findall(r'(\w+)="([^"]*)"', rule["expr"]):
        assert f'{label}="{value}"' in some
    assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_alerts_of_the_specification_are_here_and_in_the_engine_with_one_severity() -> None:
    here = {rule["alert"]: rule["labels"]["severity"] for rule in rules()}
    engine = {name.value: CONDITIONS[name].severity.value for name in ConditionName}
    assert {name: here[name] for name in SPEC} == SPEC == engine


async def test_every_metric_is_documented_and_nothing_else(shown: str) -> None:
    documented = set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram) \|", DOCUMENT, re.M))
    assert documented == families(shown)


def test_the_words_of_a_rule_are_told_from_its_metrics() -> None:
    expression = 'max by (state) (a_b{c="d"}) > 2 * sum(rate(e[5m] offset 15m)) and x_5min == 0'
    assert names_in(expression) == {"a_b", "e", "x_5min"}
    assert labels_in(expression) == {"state", "c"}
