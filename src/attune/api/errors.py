"""How an error looks to a client: one sentence, a stable code, the fields; and its status."""

from collections.abc import Mapping
from math import ceil
from typing import Final

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from attune.kernel import errors

_log = structlog.get_logger()


class WrongRequest(errors.InvalidInput):
    """A body that is sound in itself asks for what cannot be had; the contract has a 400 for it."""

    code = "wrong_request"


class WrongMedia(errors.InvalidInput):
    """The body comes in a format that this path does not read."""

    code = "wrong_media_type"


class TooLarge(errors.AttuneError):
    code = "too_large"


_STATUSES: Final[Mapping[type[errors.AttuneError], int]] = {
    WrongRequest: 400,
    WrongMedia: 415,
    TooLarge: 413,
    errors.InvalidInput: 422,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Limited: 429,
    errors.NotConfigured: 501,
    errors.Unavailable: 503,
    errors.Contention: 503,
}
_WORDS: Final = {404: "No such path.", 405: "This path does not take that method."}


def status_of(error: errors.AttuneError) -> int:
    """The status of the nearest class in the table; an error that nobody foresaw is a 500."""
    return next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), 500)


def install_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(errors.AttuneError)
    async def _(_request: Request, error: errors.AttuneError) -> JSONResponse:
        return answer_to_error(error)

    @app.exception_handler(HTTPException)
    async def _(_request: Request, error: HTTPException) -> JSONResponse:
        """A body that cannot be read comes wrapped; what was wrong with it is the cause."""
        if isinstance(error.__cause__, errors.AttuneError):
            return answer_to_error(error.__cause__)
        return _answer(error.status_code, _WORDS.get(error.status_code, str(error.detail)))

    @app.exception_handler(Exception)
    async def _(_request: Request, _error: Exception) -> JSONResponse:
        return _answer(500, "Something went wrong here; the log has the details.", "internal")


def answer_to_error(error: errors.AttuneError) -> JSONResponse:
    status = status_of(error)
    if status == 500:
        _log.error("A request failed.", code=error.code, error=error.message)
    answer = _answer(status, error.message, error.code, _details(error))
    if status == 429:
        answer.headers["Retry-After"] = str(_seconds(error.fields.get("retry_after")))
    return answer


def _seconds(known: object) -> int:
    return max(1, ceil(known)) if isinstance(known, int | float) else 1


def _details(error: errors.AttuneError) -> Mapping[str, object]:
    """Its fields; where fields of the input are at fault, each of them with its rule."""
    problems, field = error.fields.get("problems"), error.fields.get("field")
    if isinstance(problems, Mapping):
        return problems
    if isinstance(error.fields.get("faults"), list):
        return {"faults": error.fields["faults"]}
    if isinstance(error, errors.InvalidInput) and isinstance(field, str) and field:
        return {field: error.message.removeprefix(f"{field}: ")}
    return error.fields


def _answer(
    status: int, sentence: str, code: str | None = None, fields: Mapping[str, object] | None = None
) -> JSONResponse:
    body: dict[str, object] = {"error": sentence}
    if code:
        body["code"] = code
    if fields:
        body["details"] = {name: _plain(value) for name, value in fields.items()}
    return JSONResponse(body, status_code=status)


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
