"""Who one is to the server, and the tokens that show it."""

import msgspec

from attune.kernel.ids import IdentityId


class User(msgspec.Struct, frozen=True, kw_only=True):
    id: IdentityId
    login: str
    display_name: str | None = None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """`expires_in` is of the access token, in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int
    token_type: str = "Bearer"  # noqa: S105 - the scheme's name
    user: User | None = None

    def __repr__(self) -> str:
        return "Tokens(***)"


class EffectivePermission(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    actions: list[str]


class CurrentUser(User, frozen=True, kw_only=True):
    auth_provider: str = "local"
    is_local: bool = True
    can_change_password: bool = False
    assigned_permission_set_refs: list[str] = []
    effective_permissions: list[EffectivePermission] = []
