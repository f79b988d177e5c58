"""The core pack is what the contract says."""

from attune.catalog.grants import ACTIONS, RESOURCES
from attune.catalog.packs import CORE_PACK
from attune.catalog.schemas import compile_schema
from attune.catalog.sources.folder import read_pack

PACK = read_pack(CORE_PACK)
TRIGGERS = {trigger.ref: trigger for trigger in PACK.triggers}
CORE_ACTIONS = {action.ref: action for action in PACK.actions}


def test_it_is_a_standard_pack_without_a_warning() -> None:
    assert (PACK.ref, PACK.is_standard, PACK.warnings) == ("core", True, ())


def test_it_has_what_the_contract_lists() -> None:
    assert {runtime.ref for runtime in PACK.runtimes} == {
        "core.shell", "core.python", "core.nodejs", "core.native",
    }  # fmt: skip
    aliases = {alias for runtime in PACK.runtimes for alias in runtime.aliases}
    assert aliases >= {"shell", "bash", "python", "python3", "node", "nodejs"}
    assert set(TRIGGERS) == {
        "core.intervaltimer", "core.crontimer", "core.datetimetimer", "core.rruletimer",
        "core.webhook", "core.alert", "core.queue_started", "core.queue_empty",
    }  # fmt: skip
    assert set(CORE_ACTIONS) == {
        "core.echo", "core.noop", "core.sleep", "core.http_request", "core.ask",
    }  # fmt: skip


def test_timers_have_their_defaults() -> None:
    interval = compile_schema(TRIGGERS["core.intervaltimer"].param_schema)
    assert interval.check({}) == {"unit": "seconds", "interval": 60}
    cron = compile_schema(TRIGGERS["core.crontimer"].param_schema)
    assert cron.check({"expression": "* * * * *"})["timezone"] == "UTC"


def test_payloads_name_the_contracts_fields() -> None:
    assert set(TRIGGERS["core.alert"].out_schema or {}) == {
        "severity", "category", "failure_type", "component_type", "component_id", "component_ref",
        "worker_role", "observed_at", "summary", "details", "correlation_id",
    }  # fmt: skip
    for ref in ("core.queue_started", "core.queue_empty"):
        assert set(TRIGGERS[ref].out_schema or {}) == {
            "event_type", "queue_id", "queue_ref", "pack_ref", "dispatch_id", "execution_id",
            "dispatch_action_ref", "leased_item_count", "observed_at",
        }  # fmt: skip


def test_messages_are_optional_and_secrets_secret() -> None:
    for ref in ("core.echo", "core.noop"):
        compile_schema(CORE_ACTIONS[ref].param_schema).check({})
    http = compile_schema(CORE_ACTIONS["core.http_request"].param_schema)
    assert http.secret_names == {"auth_password", "auth_token"}
    assert http.check({"url": "http://x", "json_body": [1]})["method"] == "GET"


def test_permission_sets_grant_what_the_contract_says() -> None:
    granted = {
        permission_set.ref: {grant["resource"]: grant["actions"] for grant in permission_set.grants}
        for permission_set in PACK.permission_sets
    }
    assert granted["core.admin"] == {resource: list(ACTIONS) for resource in RESOURCES}
    seen = [
        "packs",
        "actions",
        "queues",
        "rules",
        "triggers",
        "executions",
        "keys",
        "artifacts",
        "runtimes",
        "workers",
    ]
    assert granted["core.viewer"] == {resource: ["read"] for resource in seen}
    executor = {resource: ["read"] for resource in seen if resource != "queues"}
    assert granted["core.executor"] == {**executor, "actions": ["read", "execute"]}
    assert granted["core.editor"] == {
        "packs": ["read", "create", "install", "configure"],
        "actions": ["read", "create", "update", "execute"],
        "queues": list(ACTIONS),
        "rules": ["read", "create", "update"],
        "triggers": ["read"],
        "executions": ["read", "cancel"],
        "keys": ["read", "update", "decrypt"],
        "artifacts": ["read"],
        "runtimes": ["read", "create", "update"],
        "workers": ["read"],
    }
