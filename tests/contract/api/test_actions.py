"""/actions as clients see it."""

from typing import Any

import pytest

from tests.contract.api.asgi import Client
from tests.contract.api.world import World
from tests.unit.catalog.packs import SHOP, archive

SUMMARY_KEYS = {
    "accesses_mcp", "created", "default_execution_permission_set_refs", "description", "entrypoint",
    "id", "label", "pack_ref", "ref", "required_worker_runtimes", "runtime", "runtime_ref",
    "runtime_version_constraint", "updated", "worker_affinity", "worker_selector",
    "worker_tolerations", "workflow_def",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {
    "is_adhoc", "out_schema", "pack", "param_schema", "max_retries", "on_worker_lost", "retry",
    "limits", "reuse",
}  # fmt: skip
NEW = {
    "ref": "core.hello",
    "pack_ref": "core",
    "label": "Hello",
    "entrypoint": "echo hello",
    "runtime_ref": "core.shell",
}


async def test_an_action_is_made_shown_changed_and_deleted(admin: Client) -> None:
    made = await admin.post("/api/v1/actions", {**NEW, "param_schema": {}})
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert (made.data["is_adhoc"], made.data["param_schema"]) == (True, {})
    assert (made.data["out_schema"], made.data["output_format"]) == (None, "text")
    assert made.data["runtime_ref"] == "core.shell"
    changed = await admin.put("/api/v1/actions/core.hello", {"label": "Hi", "max_retries": 2})
    assert (changed.data["label"], changed.data["max_retries"]) == ("Hi", 2)
    assert changed.data["entrypoint"] == "echo hello"
    assert (await admin.get(f"/api/v1/actions/{made.data['id']}")).data == changed.data
    assert (await admin.delete("/api/v1/actions/core.hello")).body["success"] is True
    assert (await admin.get("/api/v1/actions/core.hello")).status == 404


async def test_an_action_needs_no_runtime_and_takes_one_by_id(admin: Client) -> None:
    bare = {name: value for name, value in NEW.items() if name != "runtime_ref"}
    assert (await admin.post("/api/v1/actions", bare)).data["runtime"] is None
    python = (await admin.get("/api/v1/runtimes/core.python")).data
    changed = await admin.put("/api/v1/actions/core.hello", {"runtime": python["id"]})
    assert (changed.data["runtime"], changed.data["runtime_ref"]) == (python["id"], "core.python")


async def test_every_field_of_an_action_comes_back(admin: Client) -> None:
    fields = {
        "description": "Greets",
        "output_format": "json",
        "parameter_format": "yaml",
        "parameter_delivery": "file",
        "timeout_seconds": 30,
        "max_retries": 3,
        "on_worker_lost": "fail",
        "retry": {
            "delay": 10, "backoff": "exponential", "max_delay": 300, "jitter": 0.2,
            "on": ["failed", "timeout"], "exit_codes": [75], "matching": ["timed out"],
            "queue_place": "tail",
        },
        "limits": {
            "cpu_seconds": 60, "memory_mb": 512, "open_files": 64, "processes": 20, "output_mb": 1.5,
        },
        "reuse": True,
        "required_worker_runtimes": {"python": "*"},
        "worker_selector": {"zone": "a"},
        "worker_tolerations": [{"key": "gpu", "operator": "exists"}],
        "worker_affinity": {"required": [{"match_labels": {"disk": "fast"}}]},
        "param_schema": {"name": {"type": "string", "required": True}},
        "out_schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "accesses_mcp": True,
        "runtime_version_constraint": ">=3.11",
        "default_execution_permission_set_refs": ["core.viewer", "standard"],
        "tags": ["greeting"],
    }  # fmt: skip
    made = await admin.post("/api/v1/actions", {**NEW, **fields})
    assert {name: made.data[name] for name in fields} == fields


async def test_a_change_names_only_what_it_changes(admin: Client) -> None:
    before = {"timeout_seconds": 30, "runtime_version_constraint": ">=3", "description": "old"}
    await admin.post("/api/v1/actions", {**NEW, **before})
    nothing = {"label": None, "description": None, "param_schema": None, "entrypoint": None}
    kept = (await admin.put("/api/v1/actions/core.hello", nothing)).data
    assert {name: kept[name] for name in before} == before
    cleared = {"timeout_seconds": None, "runtime_version_constraint": {"op": "clear"}}
    changed = (await admin.put("/api/v1/actions/core.hello", cleared)).data
    assert (changed["timeout_seconds"], changed["runtime_version_constraint"]) == (None, None)


BROKEN_RULES: list[tuple[dict[str, Any], str]] = [
    ({"ref": "other.hello"}, "ref"),
    ({"ref": "hello"}, "ref"),
    ({"label": "  "}, "label"),
    ({"label": None}, "label"),
    ({"entrypoint": 7}, "entrypoint"),
    ({"param_schema": []}, "param_schema"),
    ({"param_schema": {"x": {"type": "strin"}}}, "param_schema"),
    ({"param_schema": {"$ref": "http://example.com/x"}}, "param_schema"),
    ({"output_format": "xml"}, "output_format"),
    ({"parameter_format": "toml"}, "parameter_format"),
    ({"on_worker_lost": "cry"}, "on_worker_lost"),
    ({"timeout_seconds": 0}, "timeout_seconds"),
    ({"timeout_seconds": 2**31}, "timeout_seconds"),
    ({"timeout_seconds": 2**70}, "timeout_seconds"),
    ({"max_retries": -1}, "max_retries"),
    ({"retry": 3}, "retry"),
    ({"retry": {"delay": -1}}, "retry.delay"),
    ({"retry": {"backoff": "square"}}, "retry.backoff"),
    ({"retry": {"matching": ["("]}}, "retry.matching"),
    ({"retry": {"on": ["failure"]}}, "retry.on"),
    ({"retry": {"exitcodes": [1]}}, "retry.exitcodes"),
    ({"limits": []}, "limits"),
    ({"limits": {"memory_mb": 0}}, "limits.memory_mb"),
    ({"limits": {"memory": 1}}, "limits.memory"),
    ({"reuse": "sometimes"}, "reuse"),
    ({"runtime_version_constraint": "newest"}, "runtime_version_constraint"),
    ({"required_worker_runtimes": {"python": "new"}}, "required_worker_runtimes.python"),
    ({"runtime": 2**64}, "runtime"),
    ({"runtime": -5}, "runtime"),
    ({"worker_tolerations": [{"operator": "equal"}]}, "worker_tolerations.0.key"),
    ({"worker_affinity": {"preferred": [{}]}}, "worker_affinity.preferred.0.preference"),
    ({"required_worker_runtimes": {"python": 3}}, "required_worker_runtimes.python"),
    ({"default_execution_permission_set_refs": ["no.such"]}, "default_execution_permission_set_refs"),
]  # fmt: skip


async def test_a_body_that_breaks_a_rule_is_422_and_names_the_field(admin: Client) -> None:
    for wrong, field in BROKEN_RULES:
        answer = await admin.post("/api/v1/actions", {**NEW, **wrong})
        assert (answer.status, list(answer.body["details"])) == (422, [field]), answer.raw
        assert answer.body["error"].startswith(f"{field}: "), answer.raw
    assert (await admin.get("/api/v1/actions/core.hello")).status == 404


async def test_retries_and_limits_are_null_until_they_are_said_and_a_null_takes_them_away(
    admin: Client,
) -> None:
    path = "/api/v1/actions/core.hello"
    made = (await admin.post("/api/v1/actions", {**NEW, "retry": None, "reuse": None})).data
    assert (made["retry"], made["limits"], made["reuse"]) == (None, None, False)
    said = {"retry": {"delay": 5, "max_delay": None}, "limits": {"processes": 3}, "reuse": True}
    changed = (await admin.put(path, said)).data
    assert (changed["retry"], changed["limits"]) == ({"delay": 5}, {"processes": 3})
    other = (await admin.put(path, {"label": "Hi"})).data
    assert (other["retry"], other["limits"], other["reuse"]) == (
        {"delay": 5},
        {"processes": 3},
        True,
    )
    replaced = (await admin.put(path, {"retry": {"jitter": 0.5}})).data
    assert replaced["retry"] == {"jitter": 0.5}
    cleared = (await admin.put(path, {"retry": None, "limits": None, "reuse": None})).data
    assert (cleared["retry"], cleared["limits"], cleared["reuse"]) == (None, None, False)
    assert (await admin.get(path)).data == cleared


async def test_a_change_that_breaks_a_rule_changes_nothing(admin: Client) -> None:
    path = "/api/v1/actions/core.hello"
    before = (await admin.post("/api/v1/actions", {**NEW, "retry": {"delay": 5}})).data
    wrong = {"label": "Hi", "retry": {"dela": 1, "jitter": 7}, "limits": {"open_files": 0}}
    refused = await admin.put(path, wrong)
    assert (refused.status, refused.body["details"]) == (
        422,
        {
            "retry.dela": "an unknown field; did you mean 'delay'?",
            "retry.jitter": "must be at most 1",
            "limits.open_files": "must be at least 1",
        },
    )
    assert (await admin.get(path)).data == before


async def test_a_pack_s_file_says_how_its_action_is_tried_again(admin: Client) -> None:
    more = (
        "max_retries: 2\nretry: {on: [timeout], delay: 3}\nlimits: {memory_mb: 64}\nreuse: true\n"
    )
    files = {**SHOP, "actions/ship.yaml": SHOP["actions/ship.yaml"] + more}
    assert (await admin.upload(archive(files).getvalue())).status == 201
    shown = (await admin.get("/api/v1/actions/shop.ship")).data
    assert (shown["max_retries"], shown["retry"]) == (2, {"on": ["timeout"], "delay": 3})
    assert (shown["limits"], shown["reuse"]) == ({"memory_mb": 64}, True)


async def test_what_an_action_names_must_be_there(admin: Client) -> None:
    for wrong in ({"pack_ref": "lab", "ref": "lab.x"}, {"runtime_ref": "core.cobol"}):
        assert (await admin.post("/api/v1/actions", {**NEW, **wrong})).status == 404
    await admin.post("/api/v1/actions", NEW)
    assert (await admin.post("/api/v1/actions", NEW)).status == 409
    assert (await admin.put("/api/v1/actions/core.nothing", {})).status == 404
    assert (await admin.delete("/api/v1/actions/core.nothing")).status == 404


async def test_lists_of_actions_are_by_ref_also_within_a_pack(admin: Client) -> None:
    await admin.upload(archive(SHOP).getvalue())
    everything = await admin.get("/api/v1/actions")
    assert everything.refs == sorted(everything.refs)
    assert {"core.echo", "shop.ship"} <= set(everything.refs)
    assert set(everything.body["items"][0]) >= SUMMARY_KEYS
    assert (await admin.get("/api/v1/packs/shop/actions")).refs == ["shop.ship"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "ECHO"}, ["core.echo"]),
        ({"q": "ship"}, ["shop.ship"]),
        ({"q": "ship core"}, []),
        ({"q": "e%o"}, []),
        ({"q": "http_request"}, ["core.http_request"]),
        ({"packs": "shop"}, ["shop.ship"]),
        ({"q": "o", "packs": ["shop", "core"], "limit": 2}, ["core.ask", "core.echo"]),
        ({"q": "sh", "packs": "core,shop"}, ["shop.ship"]),
    ],
)
async def test_actions_are_found_by_words(
    admin: Client, query: dict[str, Any], expected: list[str]
) -> None:
    await admin.upload(archive(SHOP).getvalue())
    found = await admin.get("/api/v1/actions/search", **query)
    assert found.refs == expected
    for hit in found.body["items"]:
        assert set(hit) == {
            "accesses_mcp", "description", "is_workflow", "label", "pack_ref", "ref", "runtime_ref",
        }  # fmt: skip


async def test_a_search_in_an_unknown_pack_is_404(admin: Client) -> None:
    assert (await admin.get("/api/v1/actions/search", packs="core,nothing")).status == 404
    assert (await admin.get("/api/v1/actions/search", q="\0")).status == 422


async def test_a_list_can_be_of_what_the_caller_may_execute(world: World, admin: Client) -> None:
    await admin.upload(archive(SHOP).getvalue())
    grant = {"resource": "actions", "actions": ["execute"], "constraints": {"refs": ["core.noop"]}}
    await world.permission_set("lab.noop", grant)
    for sets, expected in (((), 0), (("lab.noop",), 1), (("core.executor",), 6)):
        client = await world.client(f"one with {sets}", *sets)
        for word in ("true", "True", "TRUE", "1"):
            found = await client.get("/api/v1/actions", executable_with_current_access=word)
            assert found.body["pagination"]["total_items"] == len(found.refs) == expected, sets
    everything = await admin.get("/api/v1/actions", executable_with_current_access="False")
    assert len(everything.refs) == 6
