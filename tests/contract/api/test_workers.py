"""/workers as clients see it."""

from datetime import timedelta
from typing import Any

import msgspec

from attune.client import worker_models as client_models
from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.pipeline.workers.model import Registration, RuntimeSupport
from attune.pipeline.workers.steps import register
from tests.contract.api.asgi import Client
from tests.contract.api.plant import Plant
from tests.contract.pipeline.world import eventually

WORKERS = "/api/v1/workers"
KEYS = {
    "created", "host", "id", "last_heartbeat", "load", "name", "port", "status",
    "supported_runtimes", "updated", "worker_role", "worker_type", "heartbeat_age_seconds",
    "heartbeat_stale", "cordoned", "cordon_reason", "cordoned_by", "cordoned_at", "health_state",
    "labels", "taints", "asked_at", "answered_at", "set_aside", "cordoned_by_login",
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
        taints=[{"key": "gpu", "effect": "no_schedule"}],
    )
    at = plant.clock.now() - timedelta(seconds=ago)
    return (await plant.database.run(register, coming, at)).id


async def fail(plant: Plant, worker: int, action_ref: str, *, until: float | None) -> None:
    """Five failures in a row; set aside until so many seconds from now."""
    now = plant.clock.now()
    await plant.execute(
        """INSERT INTO worker_setback (worker, action_ref, failures, since, first_execution, until, error)
           VALUES (:worker, :ref, 5, :now, 1, :until, 'no disk')""",
        worker=worker,
        ref=action_ref,
        now=now,
        until=None if until is None else now + timedelta(seconds=until),
    )


async def past(client: Client, worker: int | str, **query: Any) -> list[tuple[str, str | None]]:
    found = await client.get(f"{WORKERS}/{worker}/history", **query)
    assert found.status == 200, found.raw
    return [(each["event"], each["text"]) for each in found.body["items"]]


async def names(client: Client, **query: Any) -> list[str]:
    return [each["name"] for each in (await client.get(WORKERS, **query)).body["items"]]


async def test_a_worker_is_shown_with_its_load(plant: Plant, operator: Client) -> None:
    [idle] = (await operator.get(WORKERS)).body["items"]
    assert (idle["health_state"], idle["load"]["total_active"]) == ("active", 0)
    for _ in range(3):
        made = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
        await plant.in_status(operator, made["id"], "running")
    shown = (await operator.get(f"{WORKERS}/{idle['id']}")).body
    assert set(shown) == KEYS
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


async def test_a_worker_that_is_not_there_is_404_whatever_is_asked_of_it(
    quiet: Plant, watcher: Client
) -> None:
    await come(quiet, "w1")
    for key in (999, 0, 2**70, "-1", "w", "W1", "w1 "):
        for word in ("cordon", "uncordon", "drain"):
            answer = await watcher.post(f"{WORKERS}/{key}/{word}")
            assert (answer.status, f"no worker {key}" in answer.body["error"]) == (404, True)
        for rest in ("", "/history", "/executions"):
            assert (await watcher.get(f"{WORKERS}/{key}{rest}")).status == 404
    for method, rest in (("GET", ""), ("GET", "/history"), ("POST", "/cordon"), ("POST", "/drain")):
        answer = await watcher.send(method, f"{WORKERS}/{'w' * 256}{rest}")
        assert (answer.status, "id" in answer.body["details"]) == (422, True)


async def test_a_worker_is_found_by_its_name_and_a_number_is_always_an_id(
    quiet: Plant, watcher: Client
) -> None:
    first = await come(quiet, "the first ä")
    second = await come(quiet, str(first))
    assert (await watcher.get(f"{WORKERS}/the first ä")).body["id"] == first
    assert (await watcher.get(f"{WORKERS}/{first}")).body["name"] == "the first ä"
    assert (await watcher.get(f"{WORKERS}/{second}")).body["name"] == str(first)
    shut = (await watcher.post(f"{WORKERS}/the first ä/cordon")).body
    assert (shut["id"], shut["cordoned"]) == (first, True)
    assert await names(watcher, cordoned=True) == ["the first ä"]
    assert (await watcher.post(f"{WORKERS}/the first ä/uncordon")).body["cordoned"] is False


async def test_a_worker_shows_what_it_is_set_aside_for_and_how_it_answers(
    quiet: Plant, watcher: Client
) -> None:
    worker, other = await come(quiet, "w1"), await come(quiet, "w2")
    await fail(quiet, worker, "core.b", until=300)
    await fail(quiet, worker, "core.a", until=200)
    await fail(quiet, worker, "core.over", until=-1)
    await fail(quiet, worker, "core.few", until=None)
    asked = quiet.clock.now() - timedelta(seconds=5)
    await quiet.execute(
        "UPDATE worker SET asked_at = :at, answered_at = :at WHERE id = :id", at=asked, id=other
    )
    shown, quiet_one = (await watcher.get(WORKERS)).body["items"]
    assert shown == (await watcher.get(f"{WORKERS}/w1")).body
    assert [each["action_ref"] for each in shown["set_aside"]] == ["core.a", "core.b"]
    first = shown["set_aside"][0]
    assert (first["failures"], first["error"], first["until"] > shown["last_heartbeat"]) == (
        5, "no disk", True,
    )  # fmt: skip
    assert shown["taints"] == [{"key": "gpu", "effect": "no_schedule"}]
    assert shown["labels"] == {"zone": "w1"}
    assert shown["supported_runtimes"] == [{"name": "shell", "versions": ["5.2"]}]
    assert (shown["asked_at"], shown["answered_at"], quiet_one["set_aside"]) == (None, None, [])
    assert quiet_one["asked_at"] == quiet_one["answered_at"] is not None


async def test_the_client_knows_every_field_of_a_worker(quiet: Plant, watcher: Client) -> None:
    worker = await come(quiet, "w1")
    await fail(quiet, worker, "core.a", until=300)
    answer = await watcher.post(f"{WORKERS}/w1/cordon", {"reason": "x"})
    read = msgspec.json.decode(answer.raw, type=client_models.Worker)
    again = msgspec.to_builtins(read)
    moments = ("last_heartbeat", "cordoned_at", "created", "updated")
    plain = {name: value for name, value in answer.body.items() if name not in moments}
    assert again.keys() == answer.body.keys()
    assert {name: again[name] for name in plain} | {"set_aside": None} == plain | {
        "set_aside": None
    }
    [aside], [shown] = again["set_aside"], plain["set_aside"]
    assert aside.keys() == shown.keys()
    [happened] = (await watcher.get(f"{WORKERS}/w1/history", page_size=1)).body["items"]
    entry = msgspec.convert(happened, client_models.WorkerHistoryEntry)
    assert msgspec.structs.asdict(entry).keys() == happened.keys()


async def test_what_a_worker_has_now_is_listed_since_when_and_only_to_who_may_see_it(
    plant: Plant, operator: Client
) -> None:
    [worker] = (await operator.get(WORKERS)).body["items"]
    at = f"{WORKERS}/{worker['name']}/executions"
    assert (await operator.get(at)).body["items"] == []
    made = [
        (await plant.order(operator, ref, parameters={"seconds": 60}))["id"]
        for ref in ("core.sleep", "core.sleep")
    ]
    started = [await plant.in_status(operator, each, "running") for each in made]
    found = (await operator.get(at)).body
    assert [each["id"] for each in found["items"]] == made
    one = found["items"][0]
    assert (one["action_ref"], one["status"], one["attempt"]) == ("core.sleep", "running", 1)
    assert one["since"] == one["started_at"] == started[0]["started_at"]
    known = msgspec.convert(one, client_models.WorkerExecution)
    assert msgspec.structs.asdict(known).keys() == one.keys()
    page = (await operator.get(at, page=2, page_size=1)).body
    assert ([each["id"] for each in page["items"]], page["pagination"]["total_items"]) == (
        made[1:], 2,
    )  # fmt: skip
    await plant.callers.permission_set("core.w", {"resource": "workers", "actions": ["read"]})
    stranger = await plant.client("stranger", "core.w")
    assert (await stranger.get(at)).body["items"] == []
    assert (await stranger.get(f"{WORKERS}/{worker['id']}")).body["load"]["running"] == 2
    for each in made:
        await operator.post(f"/api/v1/executions/{each}/cancel")


async def test_who_cordoned_a_worker_and_why_stands_in_its_history(
    quiet: Plant, watcher: Client
) -> None:
    await come(quiet, "w1")
    before = await past(watcher, "w1")
    at = f"{WORKERS}/w1"
    await watcher.post(f"{at}/uncordon", {"reason": "it is not cordoned"})
    assert await past(watcher, "w1") == before
    shut = (await watcher.post(f"{at}/drain", {"reason": "upgrade"})).body
    assert (shut["cordoned"], shut["cordon_reason"]) == (True, "upgrade")
    assert (shut["cordoned_by_login"], shut["health_state"]) == ("watcher", "cordoned")
    for again in (None, {}, {"reason": "upgrade"}):
        assert (await watcher.post(f"{at}/cordon", again)).body["cordoned_at"] == shut[
            "cordoned_at"
        ]
    other = await quiet.client("other", "core.admin")
    anew = (await other.post(f"{at}/cordon", {"reason": "fire"})).body
    assert (anew["cordon_reason"], anew["cordoned_by_login"]) == ("fire", "other")
    await other.post(f"{at}/uncordon")
    told = await past(watcher, "w1")
    assert told[: len(told) - len(before)] == [
        ("uncordoned", "by other"), ("cordoned", "by other: fire"),
        ("cordoned", "by watcher: upgrade"),
    ]  # fmt: skip


async def test_the_history_is_read_in_pages_newest_first(quiet: Plant, watcher: Client) -> None:
    await come(quiet, "w2")
    await watcher.post(f"{WORKERS}/w2/cordon")
    worker = await come(quiet, "w1")
    await quiet.execute("DELETE FROM worker_history WHERE worker = :id", id=worker)
    for number in range(3):
        await watcher.post(f"{WORKERS}/w1/cordon", {"reason": str(number)})
    lost = Happened(
        worker=WorkerId(worker), event=WorkerEvent.LOST, at=quiet.clock.now(),
        execution=ExecutionId(7), downtime_seconds=31.5,
    )  # fmt: skip
    await quiet.database.run(note, [lost])
    at = f"{WORKERS}/w1/history"
    first = (await watcher.get(at, page_size=3, include_total=True)).body
    newest = first["items"][0]
    assert (newest["event"], newest["downtime_seconds"]) == ("lost", 31.5)
    assert (newest["execution"], newest["text"]) == (7, None)
    assert (first["pagination"]["total_items"], first["pagination"]["has_next"]) == (4, True)
    before = first["pagination"]["next_before"]
    assert await past(watcher, "w1", before=before) == [("cordoned", "by watcher: 0")]
    assert await past(watcher, "w1", page=2, page_size=3) == [("cordoned", "by watcher: 0")]


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


async def test_a_drained_worker_finishes_what_it_has_and_others_get_the_rest(
    plant: Plant, operator: Client
) -> None:
    [worker] = (await operator.get(WORKERS)).body["items"]
    at = f"{WORKERS}/{worker['name']}"
    last = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    await plant.in_status(operator, last["id"], "running")
    drained = (await operator.post(f"{at}/drain", {"reason": "upgrade"})).body
    assert (drained["load"]["total_active"], drained["health_state"]) == (1, "cordoned")
    await plant.start_worker("spare")
    made = [await plant.order(operator, "core.echo") for _ in range(3)]
    ended = [await plant.finished(operator, each["id"]) for each in made]
    assert worker["id"] not in {each["worker"] for each in ended}
    await operator.post(f"/api/v1/executions/{last['id']}/cancel")

    async def has_nothing_left() -> bool:
        return bool((await operator.get(at)).body["load"]["total_active"] == 0)

    await eventually(has_nothing_left)
    assert (await operator.get(at)).body["cordon_reason"] == "upgrade"


async def test_workers_need_rights(quiet: Plant, watcher: Client) -> None:
    mine, other = await come(quiet, "mine"), await come(quiet, "other")
    nobody = await quiet.client("nobody")
    viewer = await quiet.client("viewer", "core.viewer")
    assert (await nobody.get(WORKERS)).status == 403
    assert (await nobody.get(f"{WORKERS}/{mine}")).status == 403
    assert await names(viewer) == ["mine", "other"]
    for rest in ("/history", "/executions"):
        assert (await nobody.get(f"{WORKERS}/mine{rest}")).status == 403
        assert (await viewer.get(f"{WORKERS}/mine{rest}")).status == 200
    for word in ("cordon", "uncordon", "drain"):
        refused = await viewer.post(f"{WORKERS}/{mine}/{word}")
        assert (refused.status, "permission" in refused.body["error"]) == (403, True)
    grant = {"resource": "workers", "actions": ["read", "manage"]}
    await quiet.callers.permission_set("core.one", {**grant, "constraints": {"refs": ["mine"]}})
    keeper = await quiet.client("keeper", "core.one")
    assert await names(keeper) == ["mine"]
    assert (await keeper.post(f"{WORKERS}/{mine}/cordon", {})).body["cordoned"] is True
    for rest in ("", "/history", "/executions"):
        assert (await keeper.get(f"{WORKERS}/mine{rest}")).status == 200
        assert (await keeper.get(f"{WORKERS}/other{rest}")).status == 404
    for word in ("cordon", "uncordon", "drain"):
        assert (await keeper.post(f"{WORKERS}/{other}/{word}")).status == 403
    assert "cordoned" not in [event for event, _text in await past(watcher, "other")]
    assert await names(watcher, cordoned=True) == ["mine"]
    long = {"reason": "x" * 1001}
    assert (await watcher.post(f"{WORKERS}/{mine}/cordon", long)).status == 422
