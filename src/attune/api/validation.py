"""How a request that cannot be read is answered: 400 when it is no JSON, 422 when its fields break a rule.

The rejected value is never shown, because it may be a password.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

_OUR_OWN_WORDS = "Value error, "


def install_validation_answers(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def _(_request: Request, error: RequestValidationError) -> JSONResponse:
        status, body = answer_to(error)
        return JSONResponse(body, status_code=status)


def answer_to(error: RequestValidationError) -> tuple[int, dict[str, object]]:
    problems = error.errors()
    broken = next((each for each in problems if each["type"] == "json_invalid"), None)
    if broken is not None:
        return 400, {"error": _syntax_sentence(broken), "code": "malformed"}
    details = {_field(each): _words(each) for each in problems}
    sentence = "; ".join(f"{field}: {words}" for field, words in details.items())
    return 422, {"error": sentence, "code": "invalid_input", "details": details}


def _syntax_sentence(problem: Mapping[str, Any]) -> str:
    what = problem.get("ctx", {}).get("error", "it ends too early")
    return f"The body is not valid JSON: {what}, at character {problem['loc'][-1]}."


def _field(problem: Mapping[str, Any]) -> str:
    """The path inside body, query or path; the part itself where it is missing as a whole."""
    part, *path = problem["loc"]
    return ".".join(map(str, path or [part]))


def _words(problem: Mapping[str, Any]) -> str:
    return str(problem["msg"]).removeprefix(_OUR_OWN_WORDS)
