"""Bodies and answers of /auth, under the names of the contract."""

from collections.abc import Callable
from typing import Annotated

import pydantic
from pydantic import AfterValidator, Field, SecretStr

from attune.identities.decide import (
    DISPLAY_NAME_LENGTH,
    LOGIN_LENGTHS,
    PASSWORD_LENGTHS,
    display_name_fault,
    login_fault,
    password_fault,
)


def _checked_by(fault_of: Callable[[str], str | None]) -> AfterValidator:
    """The fault in our words; a secret is looked into and stays one."""

    def check(value: str | SecretStr) -> str | SecretStr:
        plain = value.get_secret_value() if isinstance(value, SecretStr) else value
        fault = fault_of(plain)
        if fault:
            raise ValueError(fault)
        return value

    return AfterValidator(check)


def _given(value: str) -> str | None:
    return None if value else "must not be empty"


def _lengths(lengths: tuple[int, int]) -> dict[str, int]:
    return {"minLength": lengths[0], "maxLength": lengths[1]}


NewLogin = Annotated[
    str, _checked_by(login_fault), Field(json_schema_extra={**_lengths(LOGIN_LENGTHS)})
]
NewPassword = Annotated[
    SecretStr, _checked_by(password_fault), Field(json_schema_extra={**_lengths(PASSWORD_LENGTHS)})
]
DisplayName = Annotated[
    str,
    _checked_by(display_name_fault),
    Field(json_schema_extra={"maxLength": DISPLAY_NAME_LENGTH}),
]
Given = Annotated[str, _checked_by(_given), Field(json_schema_extra={"minLength": 1})]
GivenSecret = Annotated[SecretStr, _checked_by(_given), Field(json_schema_extra={"minLength": 1})]


class RegisterRequest(pydantic.BaseModel):
    login: NewLogin
    password: NewPassword
    display_name: DisplayName | None = None


class LoginRequest(pydantic.BaseModel):
    login: Given
    password: GivenSecret


class LdapLoginRequest(LoginRequest):
    pass


class RefreshTokenRequest(pydantic.BaseModel):
    refresh_token: GivenSecret


class UpdateCurrentUserRequest(pydantic.BaseModel):
    """A field that is left out stays as it is; null clears it."""

    display_name: DisplayName | None = None


class ChangePasswordRequest(pydantic.BaseModel):
    current_password: GivenSecret
    new_password: NewPassword


class UserInfo(pydantic.BaseModel):
    id: int
    login: str
    display_name: str | None


class TokenResponse(pydantic.BaseModel):
    access_token: str
    refresh_token: str
    token_type: str = "Bearer"  # noqa: S105 - the scheme's name
    expires_in: int
    user: UserInfo


class EffectivePermissionResponse(pydantic.BaseModel):
    resource: str
    actions: list[str]


class CurrentUserResponse(pydantic.BaseModel):
    id: int
    login: str
    display_name: str | None
    auth_provider: str = "local"
    is_local: bool = True
    can_change_password: bool
    provider_profile: None = None
    assigned_permission_set_refs: list[str]
    effective_permissions: list[EffectivePermissionResponse]


class AuthSettingsResponse(pydantic.BaseModel):
    """How one can log in here. What is not configured is false, and its words are null."""

    authentication_enabled: bool = True
    local_password_enabled: bool = True
    local_password_visible_by_default: bool = True
    oidc_enabled: bool = False
    oidc_visible_by_default: bool = False
    oidc_provider_name: str | None = None
    oidc_provider_label: str | None = None
    oidc_provider_icon_url: str | None = None
    ldap_enabled: bool = False
    ldap_visible_by_default: bool = False
    ldap_provider_name: str | None = None
    ldap_provider_label: str | None = None
    ldap_provider_icon_url: str | None = None
    self_registration_enabled: bool
