"""/auth as clients see it: paths, statuses, shapes."""

from typing import Any

import pytest
from fastapi import FastAPI

from attune.identities.accounts import Accounts, Registration
from attune.simulation.clock import ManualClock
from tests.contract.identities.asgi import Caller, Reply
from tests.contract.identities.rows import load_core, run_sql

ANN = {"login": "ann", "password": "correct horse", "display_name": "Ann Lee"}
REFUSED = "The token is not valid, or it has expired."


async def registered(call: Caller) -> dict[str, Any]:
    return dict((await call("POST", "/auth/register", ANN)).data)


def is_refusal(reply: Reply) -> bool:
    assert reply.body["error"]
    assert reply.body["code"] == "unauthenticated"
    assert reply.headers["www-authenticate"] == "Bearer"
    return reply.status == 401


async def test_registering_answers_with_tokens_and_the_user(call: Caller) -> None:
    answer = await call("POST", "/auth/register", ANN)
    assert answer.status == 200
    assert set(answer.body) == {"data"}
    data = answer.data
    assert (data["token_type"], data["expires_in"]) == ("Bearer", 3600)
    assert data["user"] == {"id": data["user"]["id"], "login": "ann", "display_name": "Ann Lee"}
    assert isinstance(data["user"]["id"], int)
    assert data["access_token"] != data["refresh_token"]


async def test_a_login_that_is_taken_is_409(call: Caller) -> None:
    await registered(call)
    answer = await call("POST", "/auth/register", ANN)
    assert answer.status == 409
    assert answer.body["error"] == "The login 'ann' is taken."
    assert answer.body["code"] == "duplicate"


BROKEN_RULES: list[tuple[str, Any]] = [
    ("login", "ab"),
    ("login", "x" * 256),
    ("login", ""),
    ("login", "an\x00n"),
    ("login", 7),
    ("login", None),
    ("password", "sesame1"),
    ("password", "sesame" * 30),
    ("password", {"sesame": 1}),
    ("password", None),
    ("display_name", "x" * 256),
    ("display_name", 7),
]


async def test_a_body_that_breaks_a_rule_is_422_and_names_the_field(call: Caller) -> None:
    for field, wrong in BROKEN_RULES:
        answer = await call("POST", "/auth/register", {**ANN, field: wrong})
        assert (answer.status, list(answer.body["details"])) == (422, [field])
        assert answer.body["code"] == "invalid_input"
        assert answer.body["error"].startswith(f"{field}: ")
        assert "sesame" not in str(answer.body)


async def test_a_missing_field_is_422_and_an_unknown_one_is_ignored(call: Caller) -> None:
    answer = await call("POST", "/auth/register", {"login": "ann"})
    assert (answer.status, list(answer.body["details"])) == (422, ["password"])
    assert (await call("POST", "/auth/register", {**ANN, "colour": "red"})).status == 200


async def test_a_body_that_cannot_be_read_is_told_in_words(call: Caller) -> None:
    for path in ("/auth/register", "/auth/login", "/auth/refresh"):
        broken = await call("POST", path, b'{"login": "sesame",')
        assert (broken.status, broken.body["code"]) == (400, "malformed")
        assert broken.body["error"].startswith("The body is not valid JSON: ")
        assert "sesame" not in str(broken.body)
        missing = await call("POST", path)
        assert (missing.status, missing.body["details"]) == (422, {"body": "Field required"})
        assert (await call("POST", path, [1])).status == 422
        assert (await call("POST", path, b"\xff\xfe{")).status == 400


async def test_logging_in(call: Caller) -> None:
    user = (await registered(call))["user"]
    data = (await call("POST", "/auth/login", {"login": "ann", "password": ANN["password"]})).data
    assert data["user"] == user
    assert (await call("GET", "/auth/me", token=data["access_token"])).data["login"] == "ann"


async def test_a_wrong_password_and_an_unknown_login_answer_alike(call: Caller) -> None:
    await registered(call)
    wrong = await call("POST", "/auth/login", {"login": "ann", "password": "no"})
    unknown = await call("POST", "/auth/login", {"login": "bob", "password": "no"})
    assert is_refusal(wrong)
    assert is_refusal(unknown)
    assert wrong.body == unknown.body


async def test_an_empty_field_is_422(call: Caller) -> None:
    for path in ("/auth/login", "/auth/ldap/login"):
        for body in ({}, {"login": "ann"}, {"login": "", "password": ""}):
            assert (await call("POST", path, body)).status == 422


async def test_ldap_is_not_configured(call: Caller) -> None:
    answer = await call("POST", "/auth/ldap/login", {"login": "ann", "password": "x"})
    assert (answer.status, answer.body["code"]) == (501, "not_configured")


async def test_refreshing_gives_new_tokens(call: Caller) -> None:
    first = await registered(call)
    second = (await call("POST", "/auth/refresh", {"refresh_token": first["refresh_token"]})).data
    assert set(second) == set(first)
    assert second["access_token"] != first["access_token"]
    assert second["refresh_token"] != first["refresh_token"]
    assert (await call("GET", "/auth/me", token=second["access_token"])).status == 200


async def test_what_is_no_refresh_token_is_401(call: Caller) -> None:
    tokens = await registered(call)
    for wrong in (tokens["access_token"], tokens["refresh_token"][:-1], "nonsense", "ü"):
        assert is_refusal(await call("POST", "/auth/refresh", {"refresh_token": wrong}))


async def test_my_own_account(call: Caller, accounts: Accounts) -> None:
    await load_core(accounts.database, "admin", grants=[{"resource": "packs", "actions": ["read"]}])
    tokens = await registered(call)
    assert (await call("GET", "/auth/me", token=tokens["access_token"])).body == {
        "data": {
            "id": tokens["user"]["id"],
            "login": "ann",
            "display_name": "Ann Lee",
            "auth_provider": "local",
            "is_local": True,
            "can_change_password": True,
            "provider_profile": None,
            "assigned_permission_set_refs": ["core.admin"],
            "effective_permissions": [{"resource": "packs", "actions": ["read"]}],
        }
    }


async def test_changing_my_account(call: Caller) -> None:
    token = (await registered(call))["access_token"]
    changed = await call("PUT", "/auth/me", {"display_name": "Ann B."}, token)
    assert changed.data["display_name"] == "Ann B."
    for nothing in ({}, None, {"login": "mallory"}):
        kept = await call("PUT", "/auth/me", nothing, token)
        assert (kept.data["display_name"], kept.data["login"]) == ("Ann B.", "ann")
    assert (await call("PUT", "/auth/me", {"display_name": None}, token)).data[
        "display_name"
    ] is None
    assert (await call("PUT", "/auth/me", {"display_name": "x" * 256}, token)).status == 422


async def test_changing_my_password(call: Caller) -> None:
    token = (await registered(call))["access_token"]
    change = {"current_password": ANN["password"], "new_password": "battery staple"}
    for wrong in ({"current_password": "no"}, {"current_password": "battery staple"}):
        assert is_refusal(await call("POST", "/auth/change-password", {**change, **wrong}, token))
    short = await call("POST", "/auth/change-password", {**change, "new_password": "short"}, token)
    assert (short.status, list(short.body["details"])) == (422, ["new_password"])
    done = await call("POST", "/auth/change-password", change, token)
    assert done.data == {"success": True, "message": "The password was changed."}
    login = {"login": "ann", "password": "battery staple"}
    assert (await call("POST", "/auth/login", login)).status == 200
    assert (await call("POST", "/auth/login", {**login, "password": ANN["password"]})).status == 401


OWN = [("GET", "/auth/me"), ("PUT", "/auth/me"), ("POST", "/auth/change-password")]


async def test_without_a_valid_token_it_is_401(call: Caller) -> None:
    tokens = await registered(call)
    basic = f"Basic {tokens['access_token']}"
    for method, path in OWN:
        assert is_refusal(await call(method, path, {}))
        assert is_refusal(await call(method, path, {}, token=""))
        assert is_refusal(await call(method, path, {}, authorization=basic))
        for wrong in (tokens["refresh_token"], tokens["access_token"] + "x", "nonsense"):
            answer = await call(method, path, {}, token=wrong)
            assert is_refusal(answer)
            assert answer.body["error"] == REFUSED


async def test_the_scheme_is_read_in_any_letter_case(call: Caller) -> None:
    token = (await registered(call))["access_token"]
    assert (await call("GET", "/auth/me", authorization=f"bearer {token}")).status == 200


async def test_a_token_ends(call: Caller, accounts: Accounts, clock: ManualClock) -> None:
    tokens = await registered(call)
    await clock.advance(3600)
    assert is_refusal(await call("GET", "/auth/me", token=tokens["access_token"]))
    renewed = (await call("POST", "/auth/refresh", {"refresh_token": tokens["refresh_token"]})).data
    await run_sql(accounts.database, "UPDATE identity SET frozen = true")
    assert is_refusal(await call("GET", "/auth/me", token=renewed["access_token"]))


async def test_the_settings_have_every_key(call: Caller) -> None:
    answer = await call("GET", "/auth/settings")
    words = {
        f"{kind}_provider_{word}"
        for kind in ("oidc", "ldap")
        for word in ("name", "label", "icon_url")
    }
    assert {name: answer.data[name] for name in words} == dict.fromkeys(words)
    assert {name: value for name, value in answer.data.items() if name not in words} == {
        "authentication_enabled": True,
        "local_password_enabled": True,
        "local_password_visible_by_default": True,
        "oidc_enabled": False,
        "oidc_visible_by_default": False,
        "ldap_enabled": False,
        "ldap_visible_by_default": False,
        "self_registration_enabled": True,
    }


@pytest.mark.parametrize("registration", [Registration(is_open=False)])
async def test_a_closed_registration_is_403(call: Caller) -> None:
    answer = await call("POST", "/auth/register", ANN)
    assert (answer.status, answer.body["code"]) == (403, "forbidden")
    assert (await call("GET", "/auth/settings")).data["self_registration_enabled"] is False
    assert (await call("POST", "/auth/register", {**ANN, "password": "short"})).status == 422


async def test_an_unknown_path_is_404_with_any_token_and_without(call: Caller) -> None:
    token = (await registered(call))["access_token"]
    for given in (None, "nonsense", token):
        answer = await call("GET", "/auth/nothing", token=given)
        assert (answer.status, answer.body) == (404, {"error": "No such path."})
    assert (await call("DELETE", "/auth/me", token=token)).status == 405


def test_the_description_tells_where_a_token_is_needed(app: FastAPI) -> None:
    described = app.openapi()
    [(name, scheme)] = described["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    paths = described["paths"]
    assert paths["/auth/me"]["get"]["security"] == [{name: []}]
    assert "security" not in paths["/auth/login"]["post"]
    password = described["components"]["schemas"]["RegisterRequest"]["properties"]["password"]
    assert (password["format"], password["minLength"], password["maxLength"]) == (
        "password",
        8,
        128,
    )
