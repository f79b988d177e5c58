"""Who a request comes from. A route that needs to know takes `CallerOf` as a parameter.

    @routes.get("/things")
    async def things(caller: CallerOf) -> ...

Only routes ask, so an unknown path is a 404 with any token and without one.
"""

from typing import Annotated, Final, cast

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from attune.api.answers import ErrorAnswer
from attune.identities.accounts import Accounts
from attune.identities.model import Caller
from attune.kernel.errors import Unauthenticated

_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_BEARER: Final = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="bearer",
    description="An access token from /auth/login, or the token of an execution, sensor or worker.",
)

# What the description of a route with `CallerOf` says about its refusals.
REFUSALS: Final[dict[int | str, dict[str, object]]] = {
    401: {"model": ErrorAnswer, "description": "No token, or one that is not valid."}
}


def install_authentication(app: FastAPI, accounts: Accounts) -> None:
    app.state.accounts = accounts

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
