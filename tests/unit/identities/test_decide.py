"""The rules of logins, passwords, registration and rights."""

from typing import Any

import pytest

from attune.identities.decide import (
    caller_of,
    check_own_account,
    display_name_fault,
    effective_rights,
    given_administrator,
    login_fault,
    password_fault,
    registration_is_open,
    sets_of_registered,
)
from attune.identities.model import Claims, Effective, TokenType
from attune.kernel.configuration import load_settings
from attune.kernel.errors import Forbidden, InvalidSettings

POSTGRESQL = {"ATTUNE__DATABASE__URL": "postgresql://u:p@h/d"}
ALLOW = "ATTUNE__SECURITY__ALLOW_REGISTRATION"
ADMIN = {"ATTUNE__SECURITY__ADMIN_LOGIN": "root", "ATTUNE__SECURITY__ADMIN_PASSWORD": "p" * 8}


@pytest.mark.parametrize("login", ["ann", "x" * 255, "ann@example.org", "Ann Lee", "änn"])
def test_a_login_may_be_what_people_are_called(login: str) -> None:
    assert login_fault(login) is None


@pytest.mark.parametrize(
    "login", ["", "an", "x" * 256, " ann", "ann ", "a\nnn", "ann\0", "a\u202enn"]
)
def test_a_login_that_cannot_be_told_apart_is_refused(login: str) -> None:
    assert login_fault(login)


def test_a_password_has_8_to_128_characters() -> None:
    assert password_fault("x" * 7)
    assert password_fault("x" * 129)
    assert password_fault("ü" * 8) is None
    assert password_fault("ü" * 128) is None


def test_a_display_name_is_one_line() -> None:
    assert display_name_fault("Ann Lee 🦊") is None
    assert display_name_fault("x" * 256)
    assert display_name_fault("Ann\nLee")


@pytest.mark.parametrize(
    ("environ", "is_open"),
    [
        ({}, True),
        ({ALLOW: "false"}, False),
        (POSTGRESQL, False),
        ({**POSTGRESQL, ALLOW: "true"}, True),
    ],
)
def test_registration_is_open_on_ones_own_machine(environ: dict[str, str], is_open: bool) -> None:
    assert registration_is_open(load_settings(environ)) is is_open


def test_the_administrator_of_the_settings() -> None:
    assert given_administrator(load_settings({}).security) is None
    assert given_administrator(load_settings(ADMIN).security) == ("root", "p" * 8)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"ATTUNE__SECURITY__ADMIN_LOGIN": None}, "security.admin_login"),
        ({"ATTUNE__SECURITY__ADMIN_PASSWORD": None}, "security.admin_password"),
        ({"ATTUNE__SECURITY__ADMIN_LOGIN": "ab"}, "security.admin_login"),
        ({"ATTUNE__SECURITY__ADMIN_PASSWORD": "sesame"}, "security.admin_password"),
    ],
)
def test_half_an_administrator_is_refused(changed: dict[str, str | None], field: str) -> None:
    environ = {name: value for name, value in {**ADMIN, **changed}.items() if value is not None}
    with pytest.raises(InvalidSettings, match=field) as caught:
        given_administrator(load_settings(environ).security)
    assert "sesame" not in caught.value.message


def test_the_first_is_administrator_and_later_ones_get_the_defaults() -> None:
    defaults = ["core.viewer", "core.viewer", "shop.clerk"]
    assert sets_of_registered(first=True, defaults=defaults) == ("core.admin",)
    assert sets_of_registered(first=False, defaults=defaults) == ("core.viewer", "shop.clerk")
    assert sets_of_registered(first=False, defaults=[]) == ()


def claims(token_type: TokenType, metadata: dict[str, Any] | None = None) -> Claims:
    return Claims(sub="7", login="ann", token_type=token_type, iat=0, exp=1, metadata=metadata)


@pytest.mark.parametrize("kind", [TokenType.ACCESS, TokenType.WORKER, TokenType.SENSOR])
def test_a_caller_holds_what_the_identity_holds(kind: TokenType) -> None:
    told = {"permission_set_refs": ["core.admin"]}
    assert caller_of(claims(kind, told), ["b.b", "a.a"]).permission_set_refs == ("a.a", "b.b")


@pytest.mark.parametrize(
    ("metadata", "held"),
    [
        ({"permission_set_refs": ["standard", "core.viewer"]}, ("core.viewer", "standard")),
        ({"permission_set_refs": "core.admin"}, ()),
        ({"permission_set_refs": [7, None]}, ()),
        ({}, ()),
        (None, ()),
    ],
)
def test_an_execution_holds_what_its_token_names_and_nothing_of_its_identity(
    metadata: dict[str, Any] | None, held: tuple[str, ...]
) -> None:
    caller = caller_of(claims(TokenType.EXECUTION, metadata), ["core.admin"])
    assert caller.permission_set_refs == held


def test_only_an_access_token_may_change_the_account() -> None:
    check_own_account(caller_of(claims(TokenType.ACCESS), []))
    for kind in (TokenType.EXECUTION, TokenType.WORKER, TokenType.SENSOR):
        with pytest.raises(Forbidden, match="permission"):
            check_own_account(caller_of(claims(kind), []))


def test_rights_of_several_sets_are_one_list() -> None:
    grants: list[dict[str, Any]] = [
        {"resource": "packs", "actions": ["read"]},
        {"resource": "keys", "actions": ["read"], "constraints": {"owner": "self"}},
        {"resource": "packs", "actions": ["create", "read"]},
    ]
    assert effective_rights(grants) == (
        Effective("keys", ("read",)),
        Effective("packs", ("create", "read")),
    )
    assert effective_rights([]) == ()
