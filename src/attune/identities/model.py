"""An identity, what its token says, and who a request comes from."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from attune.kernel.ids import IdentityId, PermissionAssignmentId, PermissionSetId

ADMINISTRATOR: Final = "core.admin"
LOCAL_OPERATOR: Final = "attune.local"

Subject = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,18}\Z")]


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The password's hash is not here, so that no answer and no log can show it: see `Credential`."""

    id: IdentityId
    login: str
    display_name: str | None
    attributes: dict[str, Any] = {}
    frozen: bool = False
    created: datetime
    updated: datetime


class Credential(msgspec.Struct, frozen=True):
    """An identity without a hash has no password, and cannot log in with one."""

    identity: Identity
    password_hash: str | None

    def __repr__(self) -> str:
        return f"Credential({self.identity.login!r})"


class PermissionAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """`permission_set` is null while no pack has brought a set of that ref."""

    id: PermissionAssignmentId
    identity: IdentityId
    permission_set: PermissionSetId | None
    permission_set_ref: str
    created: datetime
    updated: datetime


class TokenType(StrEnum):
    ACCESS = "access"
    REFRESH = "refresh"
    SENSOR = "sensor"
    EXECUTION = "execution"
    WORKER = "worker"


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says; times are in seconds since 1970.

    `jti` only makes two tokens of the same second differ. Nobody asks for it.
    """

    sub: Subject
    login: str
    token_type: TokenType
    iat: int | float
    exp: int | float
    jti: str | None = None
    scope: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def identity(self) -> IdentityId:
        return IdentityId(int(self.sub))


class TokenPair(msgspec.Struct, frozen=True):
    """`expires_in` is of the access token, in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int

    def __repr__(self) -> str:
        return "TokenPair(***)"


class Session(msgspec.Struct, frozen=True):
    """What whoever has shown a password or a refresh token gets."""

    identity: Identity
    tokens: TokenPair


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who a request comes from. Its rights are `permission_set_refs` and nothing else.

    For an execution's token these are the sets that the token names, not those of the identity behind it;
    `login` is then "execution:<id>".
    """

    identity: IdentityId
    login: str
    token_type: TokenType
    permission_set_refs: tuple[str, ...]
    attributes: dict[str, Any] = {}
    scope: str | None = None
    metadata: dict[str, Any] = {}


class Held(msgspec.Struct, frozen=True):
    """What an identity holds now: the refs of its permission sets, and the attributes that grants may ask for."""

    permission_set_refs: tuple[str, ...]
    attributes: dict[str, Any] = {}


class Effective(msgspec.Struct, frozen=True):
    """What may be done with a kind of thing, constraints left aside."""

    resource: str
    actions: tuple[str, ...]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """An identity as it sees itself through one of its tokens."""

    identity: Identity
    has_password: bool
    permission_set_refs: tuple[str, ...]
    effective: tuple[Effective, ...]
