"""`client.workers` with either client."""

from typing import Any

import httpx2
import pytest

import attune.client
from attune.client.worker_models import Worker
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import MOMENT, FakeServer, page, plain, refusal

W1 = "/api/v1/workers/w1"


def worker(left: int = 0, *, cordoned: bool = True, **more: Any) -> httpx2.Response:
    load = {"running": left, "total_active": left, "max_concurrent_executions": 4}
    own = {"id": 8, "name": "w1", "worker_role": "action", "worker_type": "remote"}
    return plain({**own, "cordoned": cordoned, "load": load, "created": MOMENT, **more})


def happened(id_: int, event: str = "lost") -> dict[str, Any]:
    return {"id": id_, "event": event, "at": MOMENT, "downtime_seconds": 31.5, "text": None}


async def test_a_worker_is_shown_by_its_name_with_all_that_the_api_tells(
    caller: Caller, server: FakeServer
) -> None:
    aside = {"action_ref": "a.b", "failures": 5, "until": MOMENT, "error": "no disk"}
    taint = {"key": "gpu", "value": None, "effect": "no_schedule"}
    answer = worker(
        labels={"zone": "a"}, taints=[taint], set_aside=[aside], answered_at=MOMENT, asked_at=None
    )
    server.on("GET", W1, answer)
    found = await caller.call(caller.client.workers.get, "w1")
    assert (found.id, found.labels, found.taints) == (8, {"zone": "a"}, [taint])
    [only] = found.set_aside
    assert (only.action_ref, only.failures, only.error) == ("a.b", 5, "no disk")
    assert (found.answered_at is not None, found.asked_at) == (True, None)


@pytest.mark.parametrize("word", ["cordon", "uncordon", "drain"])
@pytest.mark.parametrize(("reason", "body"), [(None, {}), ("upgrade", {"reason": "upgrade"})])
async def test_a_reason_is_sent_where_there_is_one(
    caller: Caller, server: FakeServer, word: str, reason: str | None, body: dict[str, str]
) -> None:
    server.on("POST", f"{W1}/{word}", worker())
    found = await caller.call(getattr(caller.client.workers, word), "w1", reason)
    assert (found.name, server.bodies("POST", f"{W1}/{word}")) == ("w1", [body])


async def test_what_a_worker_has_now_is_a_page(caller: Caller, server: FakeServer) -> None:
    one = {"id": 5, "action_ref": "a.b", "status": "running", "attempt": 2, "since": MOMENT}
    server.on("GET", f"{W1}/executions", page([one], more=True))
    found = await caller.call(caller.client.workers.executions, "w1", page_size=1)
    assert [(each.id, each.status, each.attempt) for each in found] == [(5, "running", 2)]
    assert server.requests[0].url.params["page_size"] == "1"


async def test_its_history_is_walked_from_each_page_to_what_is_older(
    caller: Caller, server: FakeServer
) -> None:
    path = f"{W1}/history"
    server.on("GET", path, page([happened(9), happened(7)], more=True), page([happened(3, "x")]))
    found = await caller.all(caller.client.workers.iterate_history("w1"))
    assert [(each.id, each.event) for each in found] == [(9, "lost"), (7, "lost"), (3, "x")]
    assert [each.url.params.get("before") for each in server.requests] == [None, "7"]
    server.on("GET", path, page([happened(9)]))
    [first] = await caller.call(caller.client.workers.history, "w1", page=2)
    assert (first.downtime_seconds, first.execution) == (31.5, None)


async def test_a_drain_is_waited_for_to_its_end_and_every_change_is_told(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", W1, worker(2), worker(2), worker(1), worker(0))
    seen: list[int] = []

    def tell(found: Worker) -> None:
        seen.append(found.load.total_active)

    done = await caller.call(caller.client.workers.wait_drained, "w1", timeout=30, on_change=tell)
    assert (done.load.total_active, seen) == (0, [2, 1, 0])


async def test_a_drain_that_takes_too_long_is_not_finished_and_says_that_it_stays_cordoned(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", W1, worker(1))
    with pytest.raises(attune.client.NotFinished, match=r"1 execution after 0 s\. It stays cord"):
        await caller.call(caller.client.workers.wait_drained, "w1", timeout=0)


async def test_a_worker_that_somebody_uncordons_is_not_waited_for(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", W1, worker(1), worker(0, cordoned=False))
    with pytest.raises(attune.client.NotFinished, match="was uncordoned before"):
        await caller.call(caller.client.workers.wait_drained, "w1")


async def test_a_worker_that_is_not_there_is_not_found(caller: Caller, server: FakeServer) -> None:
    server.on("GET", W1, refusal(404, "There is no worker w1."))
    with pytest.raises(attune.client.NotFound, match="no worker w1"):
        await caller.call(caller.client.workers.wait_drained, "w1")
