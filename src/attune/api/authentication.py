"""Who a request comes from. A route that needs to know takes `CallerOf` or `RightsOf` as a parameter.

    @routes.get("/things")
    async def things(rights: RightsOf) -> ...

A route that hands what it is asked for to a step takes `AskerOf`: the step looks whether the caller still holds what he
was last seen to hold, and no look of its own comes before it.

Only routes ask, so an unknown path is a 404 with any token and without one. The database may be asked for a caller while
the body of his request is still on its way (`asking_early`); whether he may do anything is still decided where it was.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, cast

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.models import HTTPBearer
from fastapi.responses import JSONResponse
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from attune.identities.accounts import Accounts
from attune.identities.belief import Belief
from attune.identities.grant_book import GrantBook
from attune.identities.model import Caller
from attune.identities.rights import Rights
from attune.kernel.errors import Unauthenticated

_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_ASKED: Final = "attune.caller"
# Seconds for which an early answer holds. Who sends his body slowly is looked up again.
_FRESH: Final = 1.0


class _Bearer(SecurityBase):
    """One dependency that describes itself and does all: a chain of them would be solved again for each request."""

    def __init__(self) -> None:
        self.scheme_name = "bearer"
        self.model = HTTPBearer(
            bearerFormat="JWT",
            description="An access token from /auth/login,"
            " or the token of an execution, sensor or worker.",
        )


def install_authentication(app: FastAPI, accounts: Accounts, grants: GrantBook) -> None:
    app.state.accounts = accounts
    app.state.grants = grants

    @app.exception_handler(Unauthenticated)
    async def _(_request: Request, error: Unauthenticated) -> JSONResponse:
        body = {"error": error.message, "code": error.code}
        return JSONResponse(body, status_code=401, headers=_CHALLENGE)


class _CallerOfToken(_Bearer):
    async def __call__(self, request: Request) -> Caller:
        return await _caller(request)


class _RightsOfToken(_Bearer):
    async def __call__(self, request: Request) -> Rights:
        return await _rights_of(request, await _caller(request))


@dataclass(frozen=True, slots=True)
class Asker:
    """`believed` holds only as far as a step confirms it; None for one who has to be looked up."""

    believed: tuple[Rights, Belief] | None
    _request: Request

    async def rights(self) -> Rights:
        """By what he holds now."""
        return await _rights_of(self._request, await _asked(self._request))


class _AskerOfToken(_Bearer):
    async def __call__(self, request: Request) -> Asker:
        belief = _accounts(request).believed(_token(request))
        if belief is None:
            return Asker(None, request)
        return Asker((await _rights_of(request, belief.caller), belief), request)


async def _rights_of(request: Request, caller: Caller) -> Rights:
    return await cast(GrantBook, request.app.state.grants).rights_of(caller)


async def _caller(request: Request) -> Caller:
    early: _Early | None = request.scope.get(_ASKED)
    if early is not None and _accounts(request).clock.monotonic() - early.since < _FRESH:
        return await early.asked
    return await _asked(request)


async def _asked(request: Request) -> Caller:
    return await _accounts(request).caller(_token(request))


def _token(request: Request) -> str:
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("This needs a token: send the header Authorization: Bearer <token>.")
    return token


def _accounts(request: Request) -> Accounts:
    return cast(Accounts, request.app.state.accounts)


class _Early(NamedTuple):
    since: float
    asked: "asyncio.Task[Caller]"


def looks_for_caller(dependant: Dependant) -> bool:
    return any(
        isinstance(one.call, _CallerOfToken | _RightsOfToken) for one in dependant.dependencies
    )


@contextmanager
def asking_early(request: Request) -> Iterator[None]:
    """Ask who it comes from now, for whoever wants to know in a moment."""
    asked = asyncio.create_task(_asked(request), name="caller")
    asked.add_done_callback(_heard)
    request.scope[_ASKED] = _Early(_accounts(request).clock.monotonic(), asked)
    try:
        yield
    finally:
        asked.cancel()


def _heard(asked: "asyncio.Task[Caller]") -> None:
    """A refusal that nobody waited for, because the request was bad in another way, is not an accident."""
    if not asked.cancelled():
        asked.exception()


CallerOf = Annotated[Caller, Depends(_CallerOfToken())]
RightsOf = Annotated[Rights, Depends(_RightsOfToken())]
AskerOf = Annotated[Asker, Depends(_AskerOfToken())]
