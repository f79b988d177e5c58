"""The rules of logins, passwords, registration and rights. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attune.identities.model import ADMINISTRATOR, Caller, Claims, Effective, TokenType
from attune.kernel.errors import Forbidden, InvalidSettings
from attune.kernel.settings import SecuritySettings, Settings

LOGIN_LENGTHS: Final = (3, 255)
PASSWORD_LENGTHS: Final = (8, 128)
DISPLAY_NAME_LENGTH: Final = 255


def login_fault(login: str) -> str | None:
    """Which rule a new login breaks. Letter case counts: `Ann` and `ann` are two identities."""
    shortest, longest = LOGIN_LENGTHS
    if not shortest <= len(login) <= longest:
        return f"must have {shortest} to {longest} characters"
    if login != login.strip() or not login.isprintable():
        return "must not begin or end with a space, nor hold control characters"
    return None


def password_fault(password: str) -> str | None:
    shortest, longest = PASSWORD_LENGTHS
    if not shortest <= len(password) <= longest:
        return f"must have {shortest} to {longest} characters"
    return None


def display_name_fault(name: str) -> str | None:
    if len(name) > DISPLAY_NAME_LENGTH:
        return f"must have at most {DISPLAY_NAME_LENGTH} characters"
    if not name.isprintable():
        return "must not hold control characters"
    return None


def registration_is_open(settings: Settings) -> bool:
    """Where nobody decided: open on one's own machine, closed on servers that others can reach."""
    chosen = settings.security.allow_registration
    return settings.embedded if chosen is None else chosen


def given_administrator(security: SecuritySettings) -> tuple[str, str] | None:
    """Login and password of the first administrator, if the settings name one; half of it is a mistake."""
    login, secret = security.admin_login, security.admin_password
    if login is None and secret is None:
        return None
    if login is None or secret is None:
        missing = "admin_login" if login is None else "admin_password"
        raise InvalidSettings(
            f"security.{missing} must be set as well: the first administrator needs both.",
            field=f"security.{missing}",
        )
    password = secret.get_secret_value()
    for field, fault in (
        ("security.admin_login", login_fault(login)),
        ("security.admin_password", password_fault(password)),
    ):
        if fault:
            raise InvalidSettings(f"{field} {fault}.", field=field)
    return login, password


def sets_of_registered(*, first: bool, defaults: Iterable[str]) -> tuple[str, ...]:
    """The very first identity is the administrator, whatever the defaults are."""
    return (ADMINISTRATOR,) if first else tuple(dict.fromkeys(defaults))


def caller_of(
    claims: Claims, held: Iterable[str], attributes: Mapping[str, Any] | None = None
) -> Caller:
    """`held` is what the identity holds now; an execution's token stands for less than its identity."""
    metadata = claims.metadata or {}
    if claims.token_type is TokenType.EXECUTION:
        named = metadata.get("permission_set_refs")
        held = [ref for ref in named if isinstance(ref, str)] if isinstance(named, list) else []
    return Caller(
        identity=claims.identity,
        login=claims.login,
        token_type=claims.token_type,
        permission_set_refs=tuple(sorted(set(held))),
        attributes=dict(attributes or {}),
        scope=claims.scope,
        metadata=metadata,
    )


def execution_of(claims: Claims) -> int | None:
    """The execution that a token belongs to, and ends with."""
    if claims.token_type is not TokenType.EXECUTION:
        return None
    named = (claims.metadata or {}).get("execution_id")
    return named if isinstance(named, int) and 0 < named < 2**63 else None


def check_own_account(caller: Caller) -> None:
    """A program that acts for somebody may not change who that somebody is."""
    if caller.token_type is not TokenType.ACCESS:
        raise Forbidden(
            f"A token of type {caller.token_type} has no permission to change an account."
        )


def effective_rights(grants: Iterable[Mapping[str, Any]]) -> tuple[Effective, ...]:
    """Grants of several sets as one list: each resource once, with every action that some grant gives."""
    actions: dict[str, set[str]] = {}
    for grant in grants:
        actions.setdefault(grant["resource"], set()).update(grant["actions"])
    return tuple(Effective(each, tuple(sorted(actions[each]))) for each in sorted(actions))
