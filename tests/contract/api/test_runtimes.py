"""/runtimes as clients see it."""

from tests.contract.api.asgi import Client

SUMMARY_KEYS = {"created", "description", "id", "name", "pack_ref", "ref", "updated"}
KEYS = SUMMARY_KEYS | {"distributions", "execution_config", "installation", "pack"}
NEW = {"ref": "core.ruby", "name": "Ruby", "pack_ref": "core"}
RUBY = "/api/v1/runtimes/core.ruby"


async def test_a_runtime_is_made_shown_changed_and_deleted(admin: Client) -> None:
    config = {"interpreter": {"binary": "ruby"}, "a key of theirs": [1, {"x": None}]}
    made = await admin.post("/api/v1/runtimes", {**NEW, "execution_config": config})
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert made.data["execution_config"] == config
    assert (made.data["distributions"], made.data["installation"]) == ({}, None)
    changed = await admin.put(RUBY, {"installation": {"op": "set", "value": [1]}, "name": None})
    assert (changed.data["installation"], changed.data["name"]) == ([1], "Ruby")
    cleared = await admin.put(RUBY, {"installation": {"op": "clear"}})
    assert cleared.data["installation"] is None
    assert (await admin.get(f"/api/v1/runtimes/{made.data['id']}")).data == cleared.data
    assert (await admin.delete(RUBY)).body["success"] is True
    for method in ("GET", "PUT", "DELETE"):
        assert (await admin.send(method, RUBY)).status == 404


async def test_runtimes_are_listed_by_ref_also_within_a_pack(admin: Client) -> None:
    await admin.post("/api/v1/runtimes", {"ref": "a.b", "name": "B"})
    everything = await admin.get("/api/v1/runtimes")
    core = ["core.native", "core.nodejs", "core.python", "core.shell"]
    assert everything.refs == ["a.b", *core]
    assert set(everything.body["items"][0]) >= SUMMARY_KEYS
    assert (await admin.get("/api/v1/packs/core/runtimes")).refs == core


async def test_a_runtime_that_breaks_a_rule_is_refused(admin: Client) -> None:
    await admin.post("/api/v1/runtimes", NEW)
    for wrong, status in (
        ({}, 409),
        ({"ref": "ruby"}, 422),
        ({"ref": "other.ruby"}, 422),
        ({"name": ""}, 422),
        ({"execution_config": []}, 422),
        ({"ref": "lab.ruby", "pack_ref": "lab"}, 404),
    ):
        assert (await admin.post("/api/v1/runtimes", {**NEW, **wrong})).status == status, wrong
