"""Who asks is looked up as early as can be, or along with what he asks for. What he holds counts as it is then."""

from collections.abc import MutableMapping
from typing import Any

import pytest

from attune.api import authentication
from attune.identities import accounts
from attune.identities.assignments import held_by
from attune.kernel.ids import IdentityId
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Disproved, Order
from attune.store.database import Tx
from attune.store.postgresql_session import Call, Session
from tests.contract.api.asgi import Client, scope_of
from tests.contract.api.plant import EXECUTIONS, Plant

EXECUTE = f"{EXECUTIONS}/execute"
ECHO = {"action_ref": "core.echo"}
WRONG = {"action_ref": "core.sleep", "parameters": {"seconds": "soon"}}
MANY = {"executions": [ECHO, ECHO]}
NONE: dict[str, Any] = {"executions": []}

FREEZE = "UPDATE identity SET frozen = true WHERE login = 'ann'"
TAKE = """
    DELETE FROM permission_assignment
     WHERE identity = (SELECT id FROM identity WHERE login = 'ann')
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[IdentityId]:
    """Whom the database was asked for on his own."""
    found: list[IdentityId] = []

    async def look(tx: Tx, identity: IdentityId) -> Any:
        found.append(identity)
        return await held_by(tx, identity)

    monkeypatch.setattr(accounts, "held_by", look)
    return found


async def made(plant: Plant) -> int:
    count: int = await plant.value(int, "SELECT count(*) FROM execution")
    return count


async def test_whoever_asks_is_looked_up_once(quiet: Plant, looks: list[IdentityId]) -> None:
    ann = await quiet.client("ann", "core.admin")
    assert (await ann.post("/api/v1/events", {"trigger_ref": "core.webhook"})).status == 201
    assert len(looks) == 1


async def test_who_was_seen_before_is_asked_for_along_with_what_he_asks_for(
    quiet: Plant, looks: list[IdentityId]
) -> None:
    ann = await quiet.client("ann", "core.executor")
    await quiet.order(ann, "core.echo")
    assert len(looks) == 1
    await quiet.order(ann, "core.echo")
    assert (await ann.post(f"{EXECUTIONS}/execute-many", MANY)).status == 201
    assert len(looks) == 1
    assert await made(quiet) == 4


@pytest.mark.parametrize("change", [FREEZE, TAKE])
@pytest.mark.parametrize(
    ("path", "body"),
    [("execute", ECHO), ("execute", WRONG), ("execute-many", MANY), ("execute-many", NONE)],
)
async def test_what_he_does_not_hold_any_more_lets_nothing_through(
    quiet: Plant, change: str, path: str, body: dict[str, Any]
) -> None:
    ann = await quiet.client("ann", "core.executor")
    await quiet.order(ann, "core.echo")
    await quiet.execute(change)
    answer = await ann.post(f"{EXECUTIONS}/{path}", body)
    refused = 401 if change == FREEZE else 201 if body is NONE else 403
    assert answer.status == refused
    assert await made(quiet) == 1
    assert await quiet.value(int, "SELECT count(*) FROM entry") == 1


async def test_what_he_has_come_to_hold_counts_at_once(quiet: Plant) -> None:
    ann = await quiet.client("ann", "core.viewer")
    assert (await ann.post(EXECUTE, ECHO)).status == 403
    await quiet.execute(
        "UPDATE permission_assignment SET permission_set_ref = 'core.executor'"
        " WHERE permission_set_ref = 'core.viewer'"
    )
    assert (await ann.post(EXECUTE, ECHO)).status == 201


async def test_who_is_thawed_is_seen_again(quiet: Plant, looks: list[IdentityId]) -> None:
    ann = await quiet.client("ann", "core.executor")
    await quiet.order(ann, "core.echo")
    await quiet.execute(FREEZE)
    assert (await ann.post(EXECUTE, ECHO)).status == 401
    await quiet.execute("UPDATE identity SET frozen = false WHERE login = 'ann'")
    looks.clear()
    await quiet.order(ann, "core.echo")
    await quiet.order(ann, "core.echo")
    assert len(looks) == 1


async def test_a_key_that_was_used_is_not_answered_to_who_may_not_ask_any_more(
    quiet: Plant,
) -> None:
    ann = await quiet.client("ann", "core.executor")
    await quiet.order(ann, "core.echo", idempotency_key="once")
    await quiet.execute(TAKE)
    assert (await ann.post(EXECUTE, {**ECHO, "idempotency_key": "once"})).status == 403


async def test_the_program_of_an_execution_that_has_ended_asks_for_nothing(
    quiet: Plant, watcher: Client
) -> None:
    parent = await quiet.order(watcher, "core.echo")
    program = quiet.running_as(parent["id"], parent["executor"], "core.executor")
    await quiet.order(program, "core.echo")
    await quiet.execute(f"UPDATE execution SET status = 'completed' WHERE id = {parent['id']}")
    assert (await program.post(EXECUTE, ECHO)).status == 401
    assert await made(quiet) == 2


class Gone:
    """A premise that does not hold."""

    async def ask(self, tx: Tx, /) -> Any:
        await tx.execute("SELECT 1")
        return lambda: False


@pytest.mark.parametrize("count", [1, 60])
async def test_an_order_without_its_premise_harms_no_other_of_its_batch(
    quiet: Plant, count: int
) -> None:
    many = (Request(action_ref="core.echo"),) * count
    orders = [Order(many), Order(many, premise=Gone()), Order(many)]
    [first, refusal, last] = await quiet.flow._request(orders)
    assert isinstance(refusal, Disproved)
    assert [len(one) for one in (first, last) if isinstance(one, list)] == [count, count]
    assert await made(quiet) == 2 * count
    assert await quiet.value(int, "SELECT count(*) FROM entry") == 2 * count


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_there_is_no_round_trip_for_somebody_known(
    quiet: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await quiet.client("ann", "core.executor")
    for _ in range(2):
        await quiet.order(ann, "core.noop")
    trips: list[list[str]] = []
    ask = Session.ask

    async def noted(session: Session, *calls: Call) -> Any:
        trips.append([call.sql for call in calls])
        return await ask(session, *calls)

    monkeypatch.setattr(Session, "ask", noted)
    await quiet.order(ann, "core.noop")
    assert (trips[0][0], trips[-1][-1]) == ("BEGIN", "COMMIT")
    assert [number for number, trip in enumerate(trips) if "FROM identity" in str(trip)] == [0]


async def test_who_is_frozen_while_his_body_is_on_its_way_is_refused(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He was looked up early, and is again because the body came late."""
    monkeypatch.setattr(authentication, "_FRESH", 0.0)
    ann = await plant.client("ann", "core.admin")
    headers = {"content-type": "application/json", "authorization": f"Bearer {ann.token}"}
    scope = scope_of("POST", "/api/v1/events", "", headers)
    told: list[MutableMapping[str, Any]] = []

    async def late() -> dict[str, Any]:
        assert (await scope[authentication._ASKED].asked).login == "ann"
        await plant.execute(FREEZE)
        body = b'{"trigger_ref": "core.webhook"}'
        return {"type": "http.request", "body": body, "more_body": False}

    async def tell(message: MutableMapping[str, Any]) -> None:
        told.append(message)

    await plant.app(scope, late, tell)
    assert told[0]["status"] == 401
    assert await plant.value(int, "SELECT count(*) FROM event") == 0
