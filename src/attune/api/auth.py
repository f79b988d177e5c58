"""/auth: registering, logging in, and one's own account."""

from fastapi import APIRouter

from attune.api.answers import Answer, Success
from attune.api.auth_models import (
    AuthSettingsResponse,
    ChangePasswordRequest,
    CurrentUserResponse,
    EffectivePermissionResponse,
    LdapLoginRequest,
    LoginRequest,
    RefreshTokenRequest,
    RegisterRequest,
    TokenResponse,
    UpdateCurrentUserRequest,
    UserInfo,
)
from attune.api.authentication import CallerOf
from attune.api.bodies import router
from attune.api.description import open_refusals, refusals
from attune.identities.accounts import Accounts
from attune.identities.model import Profile, Session
from attune.kernel.errors import NotConfigured


def auth_routes(accounts: Accounts) -> APIRouter:
    routes = router("/auth", "auth")
    _add_doors(routes, accounts)
    _add_own_account(routes, accounts)
    return routes


def _add_doors(routes: APIRouter, accounts: Accounts) -> None:
    """What needs no token, because it gives one."""

    @routes.get("/settings", summary="How one can log in here")
    async def settings() -> Answer[AuthSettingsResponse]:
        is_open = accounts.registration.is_open
        return Answer(data=AuthSettingsResponse(self_registration_enabled=is_open))

    @routes.post(
        "/register",
        summary="Make an identity of one's own",
        responses=open_refusals(400, 403, 409, 422),
    )
    async def register(body: RegisterRequest) -> Answer[TokenResponse]:
        return _tokens(await accounts.register(body.login, body.password, body.display_name))

    @routes.post(
        "/login",
        summary="Get tokens for a login and its password",
        responses=open_refusals(400, 401, 422),
    )
    async def login(body: LoginRequest) -> Answer[TokenResponse]:
        return _tokens(await accounts.login(body.login, body.password))

    @routes.post(
        "/refresh",
        summary="Get new tokens for a refresh token",
        responses=open_refusals(400, 401, 422),
    )
    async def refresh(body: RefreshTokenRequest) -> Answer[TokenResponse]:
        return _tokens(await accounts.refresh(body.refresh_token.get_secret_value()))

    @routes.post(
        "/ldap/login",
        summary="Get tokens for a login of an LDAP directory",
        responses=open_refusals(400, 422, 501),
    )
    async def ldap_login(_body: LdapLoginRequest) -> Answer[TokenResponse]:
        raise NotConfigured("Logging in through LDAP is not configured.")


def _add_own_account(routes: APIRouter, accounts: Accounts) -> None:
    @routes.get("/me", summary="One's own account and rights", responses=refusals(404))
    async def me(caller: CallerOf) -> Answer[CurrentUserResponse]:
        return _current(await accounts.profile(caller))

    @routes.put("/me", summary="Change one's own account", responses=refusals(403, 404))
    async def update_me(
        caller: CallerOf, body: UpdateCurrentUserRequest | None = None
    ) -> Answer[CurrentUserResponse]:
        if body is None or "display_name" not in body.model_fields_set:
            return _current(await accounts.profile(caller))
        return _current(await accounts.rename(caller, body.display_name))

    @routes.post(
        "/change-password", summary="Change one's own password", responses=refusals(403, 404, 409)
    )
    async def change_password(caller: CallerOf, body: ChangePasswordRequest) -> Answer[Success]:
        await accounts.change_password(caller, body.current_password, body.new_password)
        return Answer(data=Success(message="The password was changed."))


def _tokens(session: Session) -> Answer[TokenResponse]:
    identity, tokens = session.identity, session.tokens
    return Answer(
        data=TokenResponse(
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_in=tokens.expires_in,
            user=UserInfo(id=identity.id, login=identity.login, display_name=identity.display_name),
        )
    )


def _current(profile: Profile) -> Answer[CurrentUserResponse]:
    identity = profile.identity
    return Answer(
        data=CurrentUserResponse(
            id=identity.id,
            login=identity.login,
            display_name=identity.display_name,
            can_change_password=profile.has_password,
            assigned_permission_set_refs=list(profile.permission_set_refs),
            effective_permissions=[
                EffectivePermissionResponse(resource=each.resource, actions=list(each.actions))
                for each in profile.effective
            ],
        )
    )
