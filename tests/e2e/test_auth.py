"""Accounts over the network: a real `attune up`, and registration as its settings want it."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harness.ports import free_port
from tests.e2e.attune_process import AttuneProcess, run_attune

PASSWORD = "open sesame"
ANN = {"login": "ann", "password": PASSWORD, "display_name": "Ann"}


def up(folder: Path, **variables: str) -> AttuneProcess:
    return AttuneProcess("up", "--data-dir", str(folder), "--port", "0", **variables)


def ask(
    address: str, method: str, path: str, body: Any = None, token: str | None = None
) -> tuple[int, Any]:
    request = urllib.request.Request(  # noqa: S310 - our own address
        address + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own address
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def held(address: str, token: str) -> list[str]:
    status, answer = ask(address, "GET", "/auth/me", token=token)
    assert status == 200, answer
    return list(answer["data"]["assigned_permission_set_refs"])


def test_from_registering_to_logging_in_again(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        address = process.address()
        status, answer = ask(address, "POST", "/auth/register", ANN)
        assert status == 200
        first = answer["data"]
        assert held(address, first["access_token"]) == ["core.admin"]
        refresh = {"refresh_token": first["refresh_token"]}
        status, answer = ask(address, "POST", "/auth/refresh", refresh)
        assert status == 200
        assert held(address, answer["data"]["access_token"]) == ["core.admin"]
        login = {"login": "ann", "password": PASSWORD}
        status, answer = ask(address, "POST", "/auth/login", login)
        assert (status, answer["data"]["user"]) == (200, first["user"])
        wrong = ask(address, "POST", "/auth/login", {**login, "password": "open barley"})
        assert wrong[0] == 401
        assert wrong == ask(address, "POST", "/auth/login", {**login, "login": "bob"})
        assert ask(address, "POST", "/auth/register", ANN)[0] == 409
        assert process.stop() == 0
    assert PASSWORD not in "\n".join(process.log)


def test_tokens_and_accounts_outlive_a_restart(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        _, answer = ask(process.address(), "POST", "/auth/register", ANN)
        assert process.stop() == 0
    with up(tmp_path) as process:
        address = process.address()
        assert held(address, answer["data"]["access_token"]) == ["core.admin"]
        _, second = ask(address, "POST", "/auth/register", {**ANN, "login": "bob"})
        assert held(address, second["data"]["access_token"]) == []


def test_closed_registration_with_an_administrator_of_the_settings(tmp_path: Path) -> None:
    variables = {
        "ATTUNE__SECURITY__ALLOW_REGISTRATION": "false",
        "ATTUNE__SECURITY__ADMIN_LOGIN": "root",
        "ATTUNE__SECURITY__ADMIN_PASSWORD": PASSWORD,
    }
    with up(tmp_path, **variables) as process:
        address = process.address()
        _, settings = ask(address, "GET", "/auth/settings")
        assert settings["data"]["self_registration_enabled"] is False
        status, refused = ask(address, "POST", "/auth/register", ANN)
        assert (status, refused["code"]) == (403, "forbidden")
        login = {"login": "root", "password": PASSWORD}
        status, answer = ask(address, "POST", "/auth/login", login)
        assert status == 200
        assert held(address, answer["data"]["access_token"]) == ["core.admin"]
        assert process.stop() == 0
    assert PASSWORD not in "\n".join(process.log)


def test_half_an_administrator_is_told_in_one_sentence(tmp_path: Path) -> None:
    refused = run_attune(
        "up", "--data-dir", str(tmp_path), ATTUNE__SECURITY__ADMIN_PASSWORD=PASSWORD
    )
    assert refused.returncode == 2
    assert "security.admin_login must be set as well" in refused.stderr
    assert PASSWORD not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_two_api_processes_share_the_administrator_and_the_tokens(
    postgresql_url: str, rabbitmq_url: str
) -> None:
    variables = {
        "ATTUNE__DATABASE__URL": postgresql_url,
        "ATTUNE__MESSAGE_QUEUE__URL": rabbitmq_url,
        "ATTUNE__SECURITY__JWT_SECRET": "a-secret-of-the-tests",
        "ATTUNE__SECURITY__ENCRYPTION_KEY": "another-secret-of-the-tests",
        "ATTUNE__SECURITY__ADMIN_LOGIN": "root",
        "ATTUNE__SECURITY__ADMIN_PASSWORD": PASSWORD,
    }
    assert run_attune("db", "upgrade", **variables).returncode == 0
    ports = [str(free_port()), str(free_port())]
    first, second = (AttuneProcess("api", **variables, ATTUNE__SERVER__PORT=port) for port in ports)
    with first, second:
        first.wait_for_event("Ready.")
        second.wait_for_event("Ready.")
        here, there = (f"http://127.0.0.1:{port}" for port in ports)
        login = {"login": "root", "password": PASSWORD}
        _, answer = ask(here, "POST", "/auth/login", login)
        assert held(there, answer["data"]["access_token"]) == ["core.admin"]
        assert ask(there, "POST", "/auth/register", ANN)[0] == 403
        assert (first.stop(), second.stop()) == (0, 0)
    log = "\n".join([*first.log, *second.log])
    assert log.count("Made the first administrator.") == 1
    assert "open sesame" not in log
    assert "secret-of-the-tests" not in log
