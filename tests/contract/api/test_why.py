"""/executions/{id}/why and /history as clients see them."""

from typing import Any

from tests.contract.api.asgi import Client
from tests.contract.api.plant import EXECUTIONS, Plant

POLICIES = "/api/v1/policies"
ECHO = "/api/v1/actions/core.echo/queue"


async def ordered(plant: Plant, client: Client, count: int, **fields: Any) -> list[int]:
    return [(await plant.order(client, "core.echo", **fields))["id"] for _ in range(count)]


async def asked(client: Client, execution: int) -> Any:
    return (await client.get(f"{EXECUTIONS}/{execution}/why")).data


async def limited(client: Client, **fields: Any) -> None:
    body = {"ref": "core.slowly", "scope": {"type": "action", "action_ref": "core.echo"}, **fields}
    made = await client.post(POLICIES, body)
    assert made.status == 201, made.raw


async def test_it_tells_place_blockers_holders_and_the_next_step(
    quiet: Plant, watcher: Client
) -> None:
    await limited(watcher, concurrency={"limit": 1})
    holds, first, second = await ordered(quiet, watcher, 3)
    found = await asked(watcher, second)
    assert list(found) == [
        "waiting", "position", "first_blocker", "blockers", "next", "estimate", "history",
    ]  # fmt: skip
    assert (found["waiting"], found["position"], found["first_blocker"]) == (
        True, 3, "concurrency",
    )  # fmt: skip
    assert found["blockers"][0] == {
        "gate": "concurrency", "policy_ref": "core.slowly", "limit": 1, "holders": [holds],
        "text": "1 of at most 1 hold a slot",
    }  # fmt: skip
    assert found["next"] == (
        f"the one execution that holds a slot of core.echo must end: {holds};"
        " one other goes before it"
    )
    assert found["estimate"] is None
    [wait] = found["history"]
    assert (wait["reason"], wait["until"]) == ("concurrency", None)
    assert (await asked(watcher, first))["position"] == 2
    gates = [each["gate"] for each in found["blockers"]]
    assert gates == ["concurrency", "turn", "worker"]


async def test_a_time_gate_tells_until_when(quiet: Plant, watcher: Client) -> None:
    span = {"from": "2020-01-01T00:00:00Z", "to": "2999-01-01T00:00:00Z"}
    await limited(watcher, blackouts=[span])
    [one] = await ordered(quiet, watcher, 1)
    found = await asked(watcher, one)
    assert (found["first_blocker"], found["blockers"][0]["until"]) == (
        "window", "2999-01-01T00:00:00Z",
    )  # fmt: skip
    assert "holders" not in found["blockers"][0]


async def test_behind_a_paused_queue_somebody_must_resume_it(quiet: Plant, watcher: Client) -> None:
    await watcher.post(f"{ECHO}/pause")
    [one] = await ordered(quiet, watcher, 1)
    found = await asked(watcher, one)
    assert (found["first_blocker"], found["position"]) == ("pause", 1)
    assert found["next"] == "somebody must resume the queue of core.echo"


async def test_without_a_worker_it_says_which_one_must_come(quiet: Plant, watcher: Client) -> None:
    [one] = await ordered(quiet, watcher, 1, worker_selector={"zone": "north"})
    found = await asked(watcher, one)
    assert (found["waiting"], found["first_blocker"]) == (True, "worker")
    assert found["next"].startswith("a worker with ")
    assert found["next"].endswith("label zone=north must come")


async def test_a_finished_one_does_not_wait_and_tells_what_it_went_through(
    plant: Plant, operator: Client
) -> None:
    [one] = await ordered(plant, operator, 1)
    await plant.finished(operator, one)
    found = await asked(operator, one)
    assert (found["waiting"], found["position"], found["first_blocker"]) == (False, None, None)
    assert (found["blockers"], found["next"], found["estimate"]) == ([], None, None)
    assert all(each["until"] for each in found["history"])
    history = (await operator.get(f"{EXECUTIONS}/{one}/history")).data
    assert [each["status"] for each in history["statuses"]] == ["requested", "running", "completed"]
    assert (history["attempt"], history["waits"]) == (1, found["history"])


async def test_positions_are_those_of_the_list(quiet: Plant, watcher: Client) -> None:
    await quiet.limit("core.echo", 1)
    for word in ("normal", "low", "critical", "high", "normal"):
        await ordered(quiet, watcher, 1, priority=word)
    for entry in (await watcher.get(ECHO)).body["items"]:
        assert (await asked(watcher, entry["execution"]))["position"] == entry["position"]


async def test_whoever_may_not_see_it_learns_nothing(quiet: Plant, watcher: Client) -> None:
    [one] = await ordered(quiet, watcher, 1)
    stranger = await quiet.client("stranger")
    own = (await stranger.get(f"{EXECUTIONS}/{one}")).body
    for word in ("why", "history"):
        refused = await stranger.get(f"{EXECUTIONS}/{one}/{word}")
        assert (refused.status, refused.body) == (404, own)
        assert (await watcher.get(f"{EXECUTIONS}/987654/{word}")).status == 404
        assert (await watcher.get(f"{EXECUTIONS}/{2**70}/{word}")).status == 404
        assert (await watcher.get(f"{EXECUTIONS}/x/{word}")).status == 422
        assert (await Client(quiet.app).get(f"{EXECUTIONS}/{one}/{word}")).status == 401


async def test_an_execution_may_ask_about_itself(quiet: Plant, watcher: Client) -> None:
    one, other = await ordered(quiet, watcher, 2)
    program = quiet.running_as(one, 1)
    assert (await asked(program, one))["waiting"] is True
    assert (await program.get(f"{EXECUTIONS}/{other}/why")).status == 404
