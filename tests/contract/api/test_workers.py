"""/workers as clients see it."""

from datetime import timedelta
from typing import Any

from attune.pipeline.workers.model import Registration, RuntimeSupport
from attune.pipeline.workers.steps import register
from tests.contract.api.asgi import Client
from tests.contract.api.plant import Plant

WORKERS = "/api/v1/workers"
KEYS = {
    "created", "host", "id", "last_heartbeat", "load", "name", "port", "status",
    "supported_runtimes", "updated", "worker_role", "worker_type", "heartbeat_age_seconds",
    "heartbeat_stale", "cordoned", "cordon_reason", "cordoned_by", "cordoned_at", "health_state",
}  # fmt: skip
LOAD_KEYS = {
    "active_rules", "canceling", "max_concurrent_executions", "max_concurrent_sensors",
    "queue_depth", "requested", "running", "scheduled", "scheduling", "sensor_processes_monitored",
    "sensor_processes_running", "total_active", "utilization_percent",
}  # fmt: skip


async def come(plant: Plant, name: str, *, ago: float = 0.0) -> int:
    """A worker of which nothing is heard but that it came, so many seconds ago."""
    coming = Registration(
        name=name,
        capacity=4,
        supported_runtimes=[RuntimeSupport("shell", ["5.2"])],
        incarnation=name,
        labels={"zone": name},
    )
    at = plant.clock.now() - timedelta(seconds=ago)
    return (await plant.database.run(register, coming, at)).id


async def names(client: Client, **query: Any) -> list[str]:
    return [each["name"] for each in (await client.get(WORKERS, **query)).body["items"]]


async def test_a_worker_is_shown_with_its_load(plant: Plant, operator: Client) -> None:
    [idle] = (await operator.get(WORKERS)).body["items"]
    assert (idle["health_state"], idle["load"]["total_active"]) == ("active", 0)
    for _ in range(3):
        made = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
        await plant.in_status(operator, made["id"], "running")
    shown = (await operator.get(f"{WORKERS}/{idle['id']}")).body
    assert set(shown) >= KEYS
    assert set(shown["load"]) == LOAD_KEYS
    assert (shown["health_state"], shown["heartbeat_stale"]) == ("busy", False)
    load = shown["load"]
    assert (load["running"], load["total_active"], load["utilization_percent"]) == (3, 3, 30)
    assert (load["max_concurrent_executions"], load["queue_depth"]) == (10, 0)
    assert {"name": "shell", "versions": []}.keys() == shown["supported_runtimes"][0].keys()


async def test_workers_are_listed_by_name_and_found_by_how_they_are(
    quiet: Plant, watcher: Client
) -> None:
    for name in ("b", "a", "c"):
        await come(quiet, name)
    silent = await come(quiet, "silent", ago=31)
    left = await come(quiet, "left")
    broken = await come(quiet, "broken")
    await quiet.execute("UPDATE worker SET status = 'inactive' WHERE id = :id", id=left)
    await quiet.execute("UPDATE worker SET status = 'error' WHERE id = :id", id=broken)
    await watcher.post(f"{WORKERS}/{await come(quiet, 'z')}/cordon")
    await watcher.post(f"{WORKERS}/{silent}/cordon")
    everybody = ["a", "b", "broken", "c", "left", "silent", "z"]
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({}, everybody),
        ({"role": "action"}, everybody),
        ({"role": "sensor"}, []),
        ({"status": "active"}, ["a", "b", "c", "silent", "z"]),
        ({"status": "error"}, ["broken"]),
        ({"cordoned": "True"}, ["silent", "z"]),
        ({"cordoned": "false", "status": "active"}, ["a", "b", "c"]),
        ({"health_state": "active"}, ["a", "b", "c"]),
        ({"health_state": "offline"}, ["left"]),
        ({"health_state": "error"}, ["broken"]),
        ({"health_state": "cordoned"}, ["silent", "z"]),
    ]
    for query, found in expected:
        assert await names(watcher, **query) == found, query
    await watcher.post(f"{WORKERS}/{silent}/uncordon")
    shown = (await watcher.get(f"{WORKERS}/{silent}")).body
    assert (shown["health_state"], shown["heartbeat_stale"]) == ("offline", True)
    assert 31 <= shown["heartbeat_age_seconds"] < 60
    page = (await watcher.get(WORKERS, page=2, page_size=3)).body
    assert [each["name"] for each in page["items"]] == everybody[3:6]
    assert page["pagination"] == {
        "page": 2, "page_size": 3, "has_next": True, "has_previous": True,
        "total_items": 7, "total_pages": 3,
    }  # fmt: skip
    for wrong in ({"status": "tired"}, {"health_state": "fine"}, {"cordoned": "perhaps"}):
        assert (await watcher.get(WORKERS, **wrong)).status == 422


async def test_a_cordoned_worker_gets_nothing_until_it_is_uncordoned(
    plant: Plant, operator: Client
) -> None:
    [worker] = (await operator.get(WORKERS)).body["items"]
    at = f"{WORKERS}/{worker['id']}"
    me = (await operator.get("/auth/me")).data["id"]
    shut = (await operator.post(f"{at}/cordon", {"reason": "upgrade"})).body
    assert (shut["cordoned"], shut["cordon_reason"], shut["cordoned_by"]) == (True, "upgrade", me)
    assert (shut["health_state"], shut["cordoned_at"] is not None) == ("cordoned", True)
    free = (await operator.post(f"{at}/uncordon")).body
    keys = ("cordon_reason", "cordoned_by", "cordoned_at")
    assert (free["cordoned"], [free[key] for key in keys]) == (False, [None, None, None])
    assert free["health_state"] == "active"
    made = await plant.order(operator, "core.echo")
    assert (await plant.finished(operator, made["id"]))["status"] == "completed"
    for number in (999, 0, 2**70):
        for word in ("cordon", "uncordon"):
            assert (await operator.post(f"{WORKERS}/{number}/{word}")).status == 404
        assert (await operator.get(f"{WORKERS}/{number}")).status == 404


async def test_what_waits_goes_to_a_worker_that_is_uncordoned(
    plant: Plant, operator: Client
) -> None:
    [worker] = (await operator.get(WORKERS)).body["items"]
    await plant.start_worker("small", capacity=1)
    at = f"{WORKERS}/{worker['id']}"
    await operator.post(f"{at}/cordon")
    busy = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    waiting = await plant.order(operator, "core.echo")
    shown = await plant.in_status(operator, waiting["id"], "requested")
    assert shown["reason"] == "worker"
    await operator.post(f"{at}/uncordon")
    assert (await plant.finished(operator, waiting["id"]))["worker"] == worker["id"]
    await operator.post(f"/api/v1/executions/{busy['id']}/cancel")


async def test_workers_need_rights(quiet: Plant, watcher: Client) -> None:
    mine, other = await come(quiet, "mine"), await come(quiet, "other")
    nobody = await quiet.client("nobody")
    viewer = await quiet.client("viewer", "core.viewer")
    assert (await nobody.get(WORKERS)).status == 403
    assert (await nobody.get(f"{WORKERS}/{mine}")).status == 403
    assert await names(viewer) == ["mine", "other"]
    for word in ("cordon", "uncordon"):
        refused = await viewer.post(f"{WORKERS}/{mine}/{word}")
        assert (refused.status, "permission" in refused.body["error"]) == (403, True)
    grant = {"resource": "workers", "actions": ["read", "manage"]}
    await quiet.callers.permission_set("core.one", {**grant, "constraints": {"refs": ["mine"]}})
    keeper = await quiet.client("keeper", "core.one")
    assert await names(keeper) == ["mine"]
    assert (await keeper.post(f"{WORKERS}/{mine}/cordon", {})).body["cordoned"] is True
    assert (await keeper.post(f"{WORKERS}/{other}/cordon")).status == 403
    assert await names(watcher, cordoned=True) == ["mine"]
    long = {"reason": "x" * 1001}
    assert (await watcher.post(f"{WORKERS}/{mine}/cordon", long)).status == 422
