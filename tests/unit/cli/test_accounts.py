"""`attune login`, `logout` and `whoami`."""

import json
import stat

from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import URL, FakeServer, data, refusal, tokens

ME = {
    "id": 1,
    "login": "ann",
    "display_name": "Ann",
    "assigned_permission_set_refs": ["core.admin"],
    "effective_permissions": [{"resource": "packs", "actions": ["read", "install"]}],
}


def test_logging_in_keeps_the_tokens_in_a_private_file(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", "/auth/login", data(tokens()))
    shown = attune("login", "--login", "ann", "--password-stdin", stdin="open sesame\n")
    assert shown.code == 0
    assert f"Logged in to {URL} as ann" in shown.out
    assert server.bodies("POST", "/auth/login") == [{"login": "ann", "password": "open sesame"}]
    file = attune.home / ".config/attune/credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads(file.read_text())
    assert kept["current"] == URL
    assert kept["servers"][URL]["refresh_token"] == "new-refresh"
    assert "open sesame" not in file.read_text()


def test_what_is_not_given_is_asked_for_and_the_password_is_not_shown(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", "/auth/login", data(tokens()))
    shown = attune("login", "-o", "json", stdin="ann\nopen sesame\n")
    document = shown.out[shown.out.index("{") :]  # the runner plays the terminal's echo before it
    assert json.loads(document) == {"url": URL, "login": "ann"}
    assert "Password of ann" in shown.err
    assert "open sesame" not in shown.err + shown.out


def test_a_wrong_password_is_told_and_nothing_is_kept(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", "/auth/login", refusal(401, "The login or the password is wrong."))
    shown = attune("login", "--login", "ann", "--password-stdin", stdin="x\n")
    assert shown.code == 1
    assert shown.err.startswith("attune: The login or the password is wrong.")
    assert not (attune.home / ".config").exists()


def test_logging_out_forgets_the_server(attune: CommandLine, server: FakeServer) -> None:
    server.on("POST", "/auth/login", data(tokens()))
    attune("login", "--login", "ann", "--password-stdin", stdin="open sesame\n")
    assert attune("logout").out == f"Logged out of {URL}.\n"
    assert attune("logout").out == f"You were not logged in to {URL}.\n"
    file = attune.home / ".config/attune/credentials.json"
    assert "refresh" not in file.read_text()


def test_one_can_see_who_one_is(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", "/auth/me", data(ME))
    shown = attune("whoami").out
    for words in (f"{URL} (the test)", "ann", "Ann", "core.admin", "packs", "read, install"):
        assert words in shown
    assert attune("whoami", "-o", "json").json["login"] == "ann"


def test_without_a_token_the_way_in_is_told(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", "/auth/me", refusal(401, "A token is needed."))
    shown = attune("whoami")
    assert shown.code == 1
    assert shown.err == "attune: A token is needed. Log in with `attune login`.\n"
