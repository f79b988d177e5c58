"""Who a request comes from. A route that needs to know takes `CallerOf` or `RightsOf` as a parameter.

    @routes.get("/things")
    async def things(rights: RightsOf) -> ...

Only routes ask, so an unknown path is a 404 with any token and without one.
"""

from typing import Annotated, Final, cast

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from attune.identities.accounts import Accounts
from attune.identities.grant_book import GrantBook
from attune.identities.model import Caller
from attune.identities.rights import Rights
from attune.kernel.errors import Unauthenticated

_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_BEARER: Final = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="bearer",
    description="An access token from /auth/login, or the token of an execution, sensor or worker.",
)


def install_authentication(app: FastAPI, accounts: Accounts, grants: GrantBook) -> None:
    app.state.accounts = accounts
    app.state.grants = grants

    @app.exception_handler(Unauthenticated)
    async def _(_request: Request, error: Unauthenticated) -> JSONResponse:
        body = {"error": error.message, "code": error.code}
        return JSONResponse(body, status_code=401, headers=_CHALLENGE)


async def authenticated(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    if given is None or not given.credentials:
        raise Unauthenticated("This needs a token: send the header Authorization: Bearer <token>.")
    return await cast(Accounts, request.app.state.accounts).caller(given.credentials)


CallerOf = Annotated[Caller, Depends(authenticated)]


async def rights_of(request: Request, caller: CallerOf) -> Rights:
    return await cast(GrantBook, request.app.state.grants).rights_of(caller)


RightsOf = Annotated[Rights, Depends(rights_of)]
