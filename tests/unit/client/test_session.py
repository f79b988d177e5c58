"""Tokens, refusals and repeated requests: when a call is sent again, and what is told when it fails."""

import pickle

import httpx2
import pytest

from attune.client import (
    AttuneApiError,
    BadRequest,
    Conflict,
    Invalid,
    Limited,
    NotAllowed,
    NotAuthenticated,
    NotConfigured,
    NotFound,
    Server,
    ServerAway,
    ServerFault,
)
from attune.kernel.errors import InvalidInput
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import URL, FakeServer, data, execution, refusal, rule, tokens

RULE = "/api/v1/rules/1"
EXECUTE = "/api/v1/executions/execute"
BROKEN = httpx2.ConnectError("refused")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, NotAuthenticated),
        (403, NotAllowed),
        (404, NotFound),
        (409, Conflict),
        (413, AttuneApiError),
        (422, Invalid),
        (429, Limited),
        (500, ServerFault),
        (501, NotConfigured),
        (503, ServerFault),
    ],
)
async def test_each_refusal_has_its_class_sentence_code_and_details(
    caller: Caller, server: FakeServer, status: int, kind: type[AttuneApiError]
) -> None:
    answer = refusal(
        status, "The label is empty.", code="of_the_server", details={"label": "empty"}
    )
    server.on("GET", RULE, answer)
    with pytest.raises(AttuneApiError) as caught:
        await caller.call(caller.client.rules.get, 1)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert type(error) is kind
    assert (error.status, error.code) == (status, "of_the_server")
    assert (error.sentence, error.details) == ("The label is empty.", {"label": "empty"})


async def test_a_refusal_without_a_code_has_the_code_of_its_class(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", RULE, refusal(409, "No."))
    with pytest.raises(Conflict) as caught:
        await caller.call(caller.client.rules.get, 1)
    assert caught.value.code == "conflict"
    assert Conflict("Another.", status=409).code == "conflict"


async def test_a_limit_tells_when_to_try_again(caller: Caller, server: FakeServer) -> None:
    answer = refusal(429, "Too many.")
    answer.headers["Retry-After"] = "12"
    server.on("GET", RULE, answer)
    with pytest.raises(Limited) as caught:
        await caller.call(caller.client.rules.get, 1)
    assert caught.value.retry_after == 12


async def test_a_token_that_ran_out_is_renewed_once_and_kept(
    caller: Caller, server: FakeServer
) -> None:
    caller.use(Server(URL, access_token="old", refresh_token="of-old"))
    server.on("GET", RULE, refusal(401, "Expired."), data(rule()))
    server.on("POST", "/auth/refresh", data(tokens()))
    assert (await caller.call(caller.client.rules.get, 1)).ref == "demo.on_alarm"
    used = [each.headers["authorization"] for each in server.asked("GET", RULE)]
    assert used == ["Bearer old", "Bearer new-access"]
    [renewal] = server.asked("POST", "/auth/refresh")
    assert "authorization" not in renewal.headers
    assert server.bodies("POST", "/auth/refresh") == [{"refresh_token": "of-old"}]
    assert [each.refresh_token for each in caller.kept] == ["new-refresh"]


async def test_a_renewal_that_is_refused_gives_the_first_refusal(
    caller: Caller, server: FakeServer
) -> None:
    caller.use(Server(URL, access_token="old", refresh_token="of-old"))
    server.on("GET", RULE, refusal(401, "Expired."))
    server.on("POST", "/auth/refresh", refusal(401, "Expired as well."))
    with pytest.raises(NotAuthenticated, match=r"^Expired\.$"):
        await caller.call(caller.client.rules.get, 1)
    assert len(server.asked("GET", RULE)) == 1
    assert caller.kept == []


async def test_a_new_token_that_is_refused_is_not_renewed_for_ever(
    caller: Caller, server: FakeServer
) -> None:
    caller.use(Server(URL, access_token="old", refresh_token="of-old"))
    server.on("GET", RULE, refusal(401, "Never."))
    server.on("POST", "/auth/refresh", data(tokens()))
    with pytest.raises(NotAuthenticated):
        await caller.call(caller.client.rules.get, 1)
    assert len(server.asked("GET", RULE)) == 2
    assert len(server.asked("POST", "/auth/refresh")) == 1


async def test_logging_in_carries_no_token_and_speaks_with_the_new_one(
    caller: Caller, server: FakeServer
) -> None:
    server.on("POST", "/auth/login", data(tokens()))
    server.on("GET", "/auth/me", data({"id": 1, "login": "ann"}))
    got = await caller.call(caller.client.auth.login, "ann", "open sesame")
    assert "access" not in repr(got)
    assert (await caller.call(caller.client.auth.me)).login == "ann"
    assert server.bodies("POST", "/auth/login") == [{"login": "ann", "password": "open sesame"}]
    assert "authorization" not in server.requests[0].headers
    assert server.requests[1].headers["authorization"] == "Bearer new-access"


async def test_a_wrong_password_does_not_ask_for_a_renewal(
    caller: Caller, server: FakeServer
) -> None:
    caller.use(Server(URL, access_token="old", refresh_token="of-old"))
    server.on("POST", "/auth/login", refusal(401, "The login or the password is wrong."))
    with pytest.raises(NotAuthenticated, match="is wrong"):
        await caller.call(caller.client.auth.login, "ann", "barley")
    assert len(server.requests) == 1


async def test_registering_and_renewing_by_hand(caller: Caller, server: FakeServer) -> None:
    server.on("POST", "/auth/register", data(tokens("first")))
    server.on("POST", "/auth/refresh", data(tokens("second")))
    await caller.call(caller.client.auth.register, "ann", "open sesame", display_name="Ann")
    again = await caller.call(caller.client.auth.refresh)
    assert again.access_token == "second-access"
    assert server.bodies("POST", "/auth/refresh") == [{"refresh_token": "first-refresh"}]


async def test_without_a_refresh_token_there_is_nothing_to_renew(caller: Caller) -> None:
    with pytest.raises(InvalidInput, match="log in first"):
        await caller.call(caller.client.auth.refresh)


async def test_what_only_reads_is_repeated_when_the_connection_breaks(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", RULE, BROKEN, httpx2.ReadError("reset"), data(rule()))
    assert (await caller.call(caller.client.rules.get, 1)).ref == "demo.on_alarm"
    assert len(server.requests) == 3


async def test_it_is_not_repeated_for_ever(caller: Caller, server: FakeServer) -> None:
    server.on("GET", RULE, BROKEN)
    with pytest.raises(ServerAway, match=r"Cannot reach Attune at http://attune\.test"):
        await caller.call(caller.client.rules.get, 1)
    assert len(server.requests) == 3


async def test_what_changes_something_is_sent_once(caller: Caller, server: FakeServer) -> None:
    server.on("POST", EXECUTE, httpx2.ReadError("reset"))
    with pytest.raises(ServerAway, match="broke"):
        await caller.call(caller.client.executions.execute, "core.echo")
    assert len(server.requests) == 1


async def test_an_execution_with_an_idempotency_key_is_repeated(
    caller: Caller, server: FakeServer
) -> None:
    server.on("POST", EXECUTE, httpx2.ReadError("reset"), data(execution(), 201))
    made = await caller.call(caller.client.executions.execute, "core.echo", idempotency_key="k")
    assert made.id == 7
    assert [each["idempotency_key"] for each in server.bodies("POST", EXECUTE)] == ["k", "k"]


async def test_many_executions_are_repeated_only_if_each_has_a_key(
    caller: Caller, server: FakeServer
) -> None:
    path = "/api/v1/executions/execute-many"
    server.on("POST", path, BROKEN)
    some = [{"action_ref": "a.b", "idempotency_key": "k"}, {"action_ref": "a.b"}]
    with pytest.raises(ServerAway):
        await caller.call(caller.client.executions.execute_many, some)
    assert len(server.asked("POST", path)) == 1


async def test_a_refusal_is_not_repeated(caller: Caller, server: FakeServer) -> None:
    server.on("GET", RULE, refusal(503, "Later."))
    with pytest.raises(ServerFault):
        await caller.call(caller.client.rules.get, 1)
    assert len(server.requests) == 1


async def test_silence_is_told_with_the_place(caller: Caller, server: FakeServer) -> None:
    caller.use(Server(URL, "where you logged in"))
    server.on("POST", EXECUTE, httpx2.ReadTimeout("quiet"))
    with pytest.raises(ServerAway, match=r"No answer came in time from .*where you logged in"):
        await caller.call(caller.client.executions.execute, "core.echo")


def test_no_token_shows_itself() -> None:
    server = Server(URL, access_token="of-access", refresh_token="of-refresh")
    assert "of-" not in repr(server)
