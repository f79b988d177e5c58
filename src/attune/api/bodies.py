"""What every request goes through before its fields are looked at, so that no input can reach the database
that a database cannot hold: U+0000, half a surrogate pair, a number without an end, JSON without a bottom.

Routers made by `router` do it; nothing else needs to think of it.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from math import isfinite
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from attune.api.authentication import asking_early, looks_for_caller
from attune.api.errors import WrongRequest
from attune.kernel.errors import InvalidInput, NotFound

DEEPEST: Final = 64

_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_LARGEST: Final = 2**63 - 1
_CONTAINERS: Final = (dict, list)
_SHOWN_PLACE: Final = 200


def router(prefix: str, tag: str) -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=_CheckedRoute)


def decoded(body: bytes) -> Any:
    """The JSON of a body. `json.JSONDecodeError` where it is none, `InvalidInput` where it cannot be kept."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _explained(body, error)
    if _needs_a_look(body) or (_may_be_deep(body) and _is_deep(value)):
        _check(value)
    return value


def _explained(body: bytes, error: Exception) -> Any:
    """Why it was refused, in the words of a reader that tells the place; it is lenient where we are not."""
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as unreadable:
        why = "nested too deep" if isinstance(unreadable, RecursionError) else str(unreadable)
        raise WrongRequest(f"The body is not valid JSON: {why}.") from unreadable
    _check(value)
    raise WrongRequest(f"The body is not valid JSON: {error}.") from error


def _needs_a_look(body: bytes) -> bool:
    """Cheap signs that something may be wrong: most bodies have none of them, and are not walked through."""
    return b"\\u0000" in body or _LONG_NUMBER.search(body) is not None


def _may_be_deep(body: bytes) -> bool:
    return body.count(b"{") + body.count(b"[") > DEEPEST


def _is_deep(value: Any) -> bool:
    """Level by level, so that a body of many flat things is not walked through one by one."""
    level = [value]
    for _ in range(DEEPEST):
        level = [held for each in level for held in _inside(each) if isinstance(held, _CONTAINERS)]
        if not level:
            return False
    return True


def _inside(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _check(value: Any) -> None:
    for place, rule in _faults(value, "", 0):
        field = place if len(place) <= _SHOWN_PLACE else place[: _SHOWN_PLACE - 3] + "..."
        raise InvalidInput(f"{field or 'body'}: {rule}", field=field or "body")


def _faults(value: Any, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEEPEST:
        yield place, f"must not be nested more than {DEEPEST} deep"
    elif isinstance(value, dict):
        for name, held in value.items():
            here = f"{place}.{_printable(name)}" if place else _printable(name)
            if rule := _text_rule(name):
                yield here, rule
            yield from _faults(held, here, depth + 1)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from _faults(held, f"{place}[{number}]", depth + 1)
    elif rule := _plain_rule(value):
        yield place, rule


def _plain_rule(value: Any) -> str | None:
    if isinstance(value, str):
        return _text_rule(value)
    if isinstance(value, float) and not isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "must fit into 64 bits"
    return None


def _text_rule(text: str) -> str | None:
    if "\0" in text:
        return "must not hold the character U+0000"
    return None if text == _printable(text) else "must be valid Unicode"


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()


class _CheckedRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = decoded(await self.body())
        return self._json


class _CheckedRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            _check_address(request)
            return await handle(_CheckedRequest(request.scope, request.receive))

        async def checked_while_asked(request: Request) -> Response:
            with asking_early(request):
                return await checked(request)

        has_time = self.body_field is not None and looks_for_caller(self.dependant)
        return checked_while_asked if has_time else checked


def _check_address(request: Request) -> None:
    if "\0" in request.scope["path"]:
        raise NotFound("No such path.")
    if b"%00" in request.scope.get("query_string", b""):
        for name, value in request.query_params.multi_items():
            if rule := _text_rule(name) or _text_rule(value):
                raise InvalidInput(f"{name}: {rule}", field=name)
