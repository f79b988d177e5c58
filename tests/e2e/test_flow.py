"""The same story on every profile: `attune up`; an API, two executors and two workers on PostgreSQL and RabbitMQ; the
same with queues in Redis."""

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attune
from attune.client.errors import AttuneApiError
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.waiting import wait_until
from tests.e2e.installation import Installation, production


@pytest.fixture(scope="module", params=["embedded", "production", "redis"])
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    if request.param == "embedded":
        with Installation(folder) as made:
            yield made.up("--no-demo")
        return
    postgresql: PostgreSQL = request.getfixturevalue("postgresql")
    rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
    url = postgresql.create_database()
    broker = rabbitmq.create_vhost()
    with production(folder, url, broker) as made:
        if request.param == "redis":
            redis: Redis = request.getfixturevalue("redis_server")
            redis.flush()
            made.variables["ATTUNE__REDIS__URL"] = redis.url
            made.variables["ATTUNE__EXECUTOR__QUEUE__BACKEND"] = "redis"
        yield made.roles()
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)


@pytest.fixture(scope="module")
def client(installation: Installation) -> attune.Client:
    return installation.client()


def post(url: str, body: bytes, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(  # noqa: S310 - our own address
        url, data=body, headers={"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def tools(folder: Path) -> Path:
    """A pack with one action of each kind, a trigger, a limit and rules."""
    files = {
        "pack.yaml": "ref: tools\nlabel: Tools\nversion: 1.0.0\nconfig: {greeting: hello}\n",
        "actions/count.yaml": (
            "ref: tools.count\nlabel: Count\nrunner_type: python\nentry_point: count.py\n"
            "output_format: json\nparameters:\n  words: {type: array, required: true}\n"
        ),
        "actions/count.py": (
            "import json, sys\nwords = json.load(sys.stdin)['words']\n"
            "print('counting', file=sys.stderr)\nprint(json.dumps({'count': len(words)}))\n"
        ),
        "actions/talk.yaml": "ref: tools.talk\nlabel: Talk\nrunner_type: shell\nentry_point: talk.sh\n",
        "actions/talk.sh": "echo one\nsleep 1\necho two\n",
        "triggers/order.yaml": "ref: tools.order\nlabel: Order\n",
        "rules/large.yaml": (
            "ref: tools.large\nlabel: Large orders\ntrigger_ref: tools.order\naction_ref: core.echo\n"
            "conditions: {expression: event.payload.amount > 100}\n"
            "action_params:\n  message: '{{ pack.config.greeting }} {{ event.payload.name }}'\n"
        ),
    }
    for name, text in files.items():
        place = folder / "tools" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "tools"


@pytest.fixture(scope="module")
def pack(client: attune.Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    return client.packs.upload(tools(tmp_path_factory.mktemp("source")), force=True).pack.ref


def test_a_request_runs_to_its_end(client: attune.Client) -> None:
    execution = client.executions.execute("core.echo", {"message": "hi"})
    ended = client.executions.wait(execution.id, timeout=30)
    assert ended.status == "completed"
    assert ended.result is not None
    assert ended.result["stdout"] == "hi\n"


def test_an_uploaded_python_action_runs_with_its_parameters(
    client: attune.Client, pack: str
) -> None:
    execution = client.executions.execute(f"{pack}.count", {"words": ["a", "b"]})
    ended = client.executions.wait(execution.id, timeout=30)
    assert ended.status == "completed", ended.result
    assert ended.result is not None
    assert ended.result["data"] == {"count": 2}
    assert ended.result["stderr"] == "counting\n"


def test_output_can_be_followed_while_it_is_written(client: attune.Client, pack: str) -> None:
    execution = client.executions.execute(f"{pack}.talk")
    pieces = list(client.executions.logs(execution.id, stream="stdout", follow=True))
    assert "".join(pieces) == "one\ntwo\n"


def test_a_webhook_fires_a_rule_with_a_condition_and_a_template(
    installation: Installation, client: attune.Client, pack: str
) -> None:
    bearer = {"Authorization": f"Bearer {installation.token}"}
    base = f"{installation.address}/api/v1"
    config = {"webhook_config": {"hmac": {"enabled": True, "secret": "s3", "algorithm": "sha256"}}}
    status, enabled = post(
        f"{base}/triggers/{pack}.order/webhooks/enable", json.dumps(config).encode(), **bearer
    )
    assert status == 200, enabled
    url = f"{base}/webhooks/{enabled['data']['webhook_key']}"
    body = json.dumps({"payload": {"amount": 120, "name": "Ann"}}).encode()
    assert post(url, body)[0] == 401
    signature = hmac.new(b"s3", body, hashlib.sha256).hexdigest()
    status, received = post(url, body, **{"X-Webhook-Signature": f"sha256={signature}"})
    assert status == 200, received
    assert received["data"]["message"] == "Webhook received successfully"
    event_id = received["data"]["event_id"]
    found: list[Any] = []

    def enforced() -> bool:
        found[:] = client.enforcements.list(event=event_id).items
        return bool(found)

    wait_until(enforced, timeout=30)
    [summary] = found
    [execution] = client.executions.list(enforcement=summary.id).items
    ended = client.executions.wait(execution.id, timeout=30)
    assert ended.config == {"message": "hello Ann"}
    assert ended.result is not None
    assert ended.result["stdout"] == "hello Ann\n"


def test_a_rule_that_does_not_match_tells_why_on_the_event(
    client: attune.Client, pack: str
) -> None:
    event = client.events.emit(f"{pack}.order", {"amount": 5})
    wait_until(lambda: bool(client.events.get(event.id).rules), timeout=30)
    [rule] = client.events.get(event.id).rules or []
    assert (rule.rule_ref, rule.matched) == ("tools.large", False)
    assert client.enforcements.list(event=event.id).items == []


def test_a_running_execution_can_be_cancelled(client: attune.Client) -> None:
    execution = client.executions.execute("core.sleep", {"seconds": 120})
    wait_until(lambda: client.executions.get(execution.id).status == "running", timeout=30)
    client.executions.cancel(execution.id)
    assert client.executions.wait(execution.id, timeout=30).status == "cancelled"


def test_many_requests_at_once_all_end(client: attune.Client) -> None:
    requests = [{"action_ref": "core.noop", "trace_tag": "bulk"} for _ in range(500)]
    made = client.executions.execute_many(requests)  # type: ignore[arg-type]
    last = client.executions.wait(made[-1].id, timeout=60)
    assert last.status == "completed"
    ids = {execution.id for execution in made}

    def over() -> bool:
        done = {
            each.id
            for each in client.executions.iterate(action_ref="core.noop", status="completed")
        }
        return ids <= done

    wait_until(over, timeout=60, interval=0.5)


def test_many_events_at_once_are_all_answered(client: attune.Client, pack: str) -> None:
    events = [
        {"trigger_ref": f"{pack}.order", "payload": {"amount": 101 + n, "name": "bulk"}}
        for n in range(100)
    ]
    made = client.events.emit_many(events)  # type: ignore[arg-type]

    def answered() -> bool:
        found = client.enforcements.list(event=made[-1].id, include_total=True)
        return bool(found.items)

    wait_until(answered, timeout=30)
    total = client.executions.list(rule_ref="tools.large", include_total=True).pagination
    assert (total.total_items or 0) >= 100


def test_bad_input_is_told_by_name_and_changes_nothing(client: attune.Client) -> None:
    with pytest.raises(AttuneApiError) as unknown:
        client.executions.execute("core.nothing")
    assert unknown.value.status == 404
    with pytest.raises(AttuneApiError) as wrong:
        client.executions.execute("core.sleep", {"seconds": "long"})
    assert wrong.value.status == 422
    assert "seconds" in str(wrong.value.details)
    stranger = attune.Client(client.server.url, token="nonsense")
    with stranger, pytest.raises(AttuneApiError) as refused:
        stranger.executions.list()
    assert refused.value.status == 401


def test_a_worker_is_listed_with_what_it_can_run(
    installation: Installation, client: attune.Client
) -> None:
    workers = client.workers.list().items
    assert len(workers) == sum(name.startswith(("up", "worker")) for name in installation.processes)
    assert {"native", "shell", "python"} <= {r.name for r in workers[0].supported_runtimes}
