"""/packs as clients see it."""

from pathlib import Path
from typing import Any

from attune.simulation.clock import ManualClock
from tests.contract.api.asgi import Client
from tests.contract.api.world import World
from tests.unit.catalog.packs import HEAD, SHOP, archive, write

SUMMARY_KEYS = {
    "created", "description", "id", "is_standard", "label", "ref", "tags", "updated", "version",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {"conf_schema", "config", "dependencies", "meta", "runtime_deps"}
NEW = {"ref": "lab", "label": "Lab", "version": "1.0.0"}


def shop() -> bytes:
    return archive(SHOP).getvalue()


async def test_a_pack_is_made_shown_changed_and_deleted(admin: Client, clock: ManualClock) -> None:
    made = await admin.post("/api/v1/packs", {**NEW, "config": {"region": "eu"}, "colour": "red"})
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert (made.data["config"], made.data["tags"]) == ({"region": "eu"}, [])
    assert made.data["created"] == "2026-01-01T00:00:00Z"
    await clock.advance(5)
    changed = await admin.put("/api/v1/packs/lab", {"label": "Laboratory"})
    assert (changed.data["label"], changed.data["config"]) == ("Laboratory", {"region": "eu"})
    assert changed.data["updated"] == "2026-01-01T00:00:05Z"
    assert (await admin.get(f"/api/v1/packs/{made.data['id']}")).data == changed.data
    gone = await admin.delete("/api/v1/packs/lab")
    assert (gone.status, gone.body["success"]) == (200, True)
    assert (await admin.get("/api/v1/packs/lab")).status == 404
    assert (await admin.delete("/api/v1/packs/lab")).status == 404


async def test_a_description_is_set_and_cleared_by_a_patch(admin: Client) -> None:
    await admin.post("/api/v1/packs", {**NEW, "description": "old"})
    for patch, expected in (
        ({"op": "set", "value": "new"}, "new"),
        (None, "new"),
        ({"op": "clear"}, None),
        ("plain", "plain"),
    ):
        changed = await admin.put("/api/v1/packs/lab", {"description": patch})
        assert changed.data["description"] == expected
    wrong = await admin.put("/api/v1/packs/lab", {"description": {"op": "erase"}})
    assert wrong.status == 422
    assert any(name.startswith("description") for name in wrong.body["details"])


async def test_a_change_may_have_no_body_or_an_empty_one(admin: Client) -> None:
    made = await admin.post("/api/v1/packs", NEW)
    for body in (None, {}, {"label": None, "tags": None}):
        assert (await admin.put("/api/v1/packs/lab", body)).data == made.data


async def test_a_taken_ref_is_409_and_a_bad_one_422(admin: Client) -> None:
    await admin.post("/api/v1/packs", NEW)
    again = await admin.post("/api/v1/packs", NEW)
    assert (again.status, again.body["code"]) == (409, "duplicate")
    for ref in ("Lab", "lab.x", "", "1234", "x" * 300, "lab\x00"):
        bad = await admin.post("/api/v1/packs", {**NEW, "ref": ref})
        assert (bad.status, list(bad.body["details"])) == (422, ["ref"]), ref


async def test_lists_are_by_ref_with_totals(admin: Client) -> None:
    for name in ("c", "a", "b"):
        await admin.post("/api/v1/packs", {**NEW, "ref": name})
    page = await admin.get("/api/v1/packs", page=2, limit=2)
    assert page.refs == ["c", "core"]
    assert set(page.body["items"][0]) == SUMMARY_KEYS
    assert page.body["pagination"] == {
        "page": 2, "page_size": 2, "has_next": False, "has_previous": True,
        "total_items": 4, "total_pages": 2,
    }  # fmt: skip


async def test_an_upload_installs_a_pack_and_tells_of_it(admin: Client, world: World) -> None:
    answer = await admin.upload(shop(), skip_tests="true")
    assert answer.status == 201
    assert set(answer.data) >= {"pack", "test_result", "tests_skipped"}
    assert set(answer.data["pack"]) >= KEYS
    assert answer.data["pack"]["owner_identity"] is None
    assert (await admin.get("/api/v1/rules/shop.on_order")).data["is_adhoc"] is False
    assert world.told.found == [("pack.registered", "shop")]


async def test_an_upload_of_a_pack_that_exists_needs_force(admin: Client, world: World) -> None:
    first = await admin.upload(shop())
    assert (await admin.upload(shop())).status == 409
    await admin.put("/api/v1/packs/shop", {"config": {"mine": 1}})
    files = {path: text for path, text in SHOP.items() if not path.startswith("rules/")}
    files["pack.yaml"] = HEAD.replace("1.2.3", "2.0.0")
    second = await admin.upload(archive(files, top="shop-2/").getvalue(), force="true")
    assert second.status == 201
    assert second.data["pack"]["id"] == first.data["pack"]["id"]
    assert second.data["pack"]["version"] == "2.0.0"
    assert second.data["pack"]["config"] == {"mine": 1}
    assert (await admin.get("/api/v1/rules/shop.on_order")).status == 404
    assert world.told.found[-1] == ("pack.updated", "shop")


async def test_a_folder_of_the_server_is_registered(admin: Client, tmp_path: Path) -> None:
    folder = write(tmp_path / "shop", SHOP)
    answer = await admin.post("/api/v1/packs/register", {"path": str(folder), "skip_tests": True})
    assert answer.status == 201
    assert (answer.data["ref"], answer.data["label"]) == ("shop", "Shop")
    assert set(answer.data) >= KEYS | {"pack", "test_result", "tests_skipped"}
    again = {"path": str(folder)}
    assert (await admin.post("/api/v1/packs/register", again)).status == 409
    forced = await admin.post("/api/v1/packs/register", {**again, "force": True})
    assert forced.data["pack"]["id"] == answer.data["id"]
    unknown = await admin.post("/api/v1/packs/register", {"path": str(tmp_path / "nothing")})
    assert (unknown.status, list(unknown.body["details"])) == (400, ["path"])


async def test_a_pack_is_installed_from_a_folder_or_an_archive(
    admin: Client, tmp_path: Path
) -> None:
    folder = write(tmp_path / "shop", SHOP)
    packed = tmp_path / "shop.tar.gz"
    packed.write_bytes(shop())
    for source in (folder, packed):
        answer = await admin.post("/api/v1/packs/install", {"source": str(source)})
        assert (answer.status, answer.data["pack"]["ref"]) == (200, "shop")


async def test_sources_that_cannot_be_had_are_told_apart(admin: Client, tmp_path: Path) -> None:
    for source, status in (
        ("https://packs.example/shop.git", 501),
        ("git@packs.example:shop.git", 501),
        ("ssh://git@packs.example/shop", 501),
        (str(tmp_path / "nothing"), 400),
        ("x" * 5000, 400),
        ("", 422),
    ):
        answer = await admin.post("/api/v1/packs/install", {"source": source})
        assert answer.status == status, source


async def test_workflows_and_tests_of_a_pack_without_files_are_none(admin: Client) -> None:
    sync = await admin.post("/api/v1/packs/core/workflows/sync")
    assert sync.data == {
        "pack_ref": "core", "loaded_count": 0, "registered_count": 0, "workflows": [], "errors": [],
    }  # fmt: skip
    validated = await admin.post("/api/v1/packs/core/workflows/validate", {})
    assert validated.data == {
        "pack_ref": "core", "validated_count": 0, "error_count": 0, "errors": {},
    }  # fmt: skip
    tests = await admin.get("/api/v1/packs/core/tests")
    assert (tests.refs, tests.body["pagination"]["total_items"]) == ([], 0)
    assert (await admin.get("/api/v1/packs/core/tests/latest")).status == 404
    assert (await admin.post("/api/v1/packs/core/test")).status == 501


async def test_an_unknown_pack_is_404_wherever_it_is_named(admin: Client) -> None:
    for method, path in (
        ("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/actions"), ("GET", "/rules"),
        ("GET", "/triggers"), ("GET", "/runtimes"), ("GET", "/tests"), ("GET", "/tests/latest"),
        ("POST", "/test"), ("POST", "/workflows/sync"), ("POST", "/workflows/validate"),
    ):  # fmt: skip
        for ref in ("nothing", "99999", "9" * 40, "%00", "%ff"):
            answer = await admin.send(method, f"/api/v1/packs/{ref}{path}")
            assert (answer.status, answer.body["code"]) == (404, "not_found"), (method, ref, path)


async def test_deleting_a_pack_takes_all_that_is_in_it(admin: Client, world: World) -> None:
    await admin.upload(shop())
    await admin.delete("/api/v1/packs/shop")
    for path in ("actions/shop.ship", "triggers/shop.ordered", "rules/shop.on_order"):
        assert (await admin.get(f"/api/v1/{path}")).status == 404
    assert world.told.found[-1] == ("pack.deleted", "shop")


async def test_the_core_pack_cannot_be_deleted(admin: Client) -> None:
    assert (await admin.delete("/api/v1/packs/core")).status == 409
    assert (await admin.get("/api/v1/packs/core")).status == 200


async def test_each_change_of_a_pack_is_told_once_and_a_refused_one_not(
    admin: Client, world: World
) -> None:
    steps: list[tuple[str, str, Any]] = [
        ("POST", "/api/v1/packs", NEW),
        ("POST", "/api/v1/packs", NEW),
        ("PUT", "/api/v1/packs/lab", {"label": "New"}),
        ("PUT", "/api/v1/packs/lab", {"label": ""}),
        ("DELETE", "/api/v1/packs/lab", None),
        ("DELETE", "/api/v1/packs/lab", None),
    ]
    for method, path, body in steps:
        await admin.send(method, path, body)
    assert world.told.found == [
        ("pack.registered", "lab"), ("pack.updated", "lab"), ("pack.deleted", "lab"),
    ]  # fmt: skip
