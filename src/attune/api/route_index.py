"""Finds the route of a request without asking every route for it: by method, length and head of the path.

Only a route that takes the request as it stands comes from here. An unknown path, a method that is not taken, a slash
too many: all that stays with the router, which asks every route in its order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

_HEAD: Final = 4  # steps that tell one area from another: "", "api", "v1", "executions"

_Place = tuple[str, int, tuple[str, ...]]


class RouteIndex:
    """`otherwise` answers what is not found."""

    def __init__(self, routes: Iterable[BaseRoute], otherwise: ASGIApp) -> None:
        self._places = _placed(routes)
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._found(scope) if _is_plain(scope) else None
        if found is None:
            return await self._otherwise(scope, receive, send)
        route, known = found
        scope.update(known)
        return await route.handle(scope, receive, send)

    def _found(self, scope: Scope) -> tuple[Route, Scope] | None:
        steps = scope["path"].split("/")
        for route in self._places.get((scope["method"], len(steps), tuple(steps[:_HEAD])), ()):
            match, known = route.matches(scope)
            if match is Match.FULL:
                return route, known
        return None


def install_route_index(app: FastAPI) -> None:
    """After the last route: of those that come later it knows nothing."""
    app.router.middleware_stack = RouteIndex(app.router.routes, app.router.middleware_stack)


def _is_plain(scope: Scope) -> bool:
    """Whoever mounts or traces the application wants what the router notes on its way."""
    traced = scope.get("fastapi.telemetry") is not None
    return scope["type"] == "http" and not scope.get("root_path") and not traced


def _placed(routes: Iterable[BaseRoute]) -> Mapping[_Place, Sequence[Route]]:
    places: dict[_Place, list[Route]] = {}
    for route in _placeable(routes):
        steps = route.path.split("/")
        for method in route.methods or ():
            places.setdefault((method, len(steps), tuple(steps[:_HEAD])), []).append(route)
    return places


def _placeable(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """Of two that fit the first one serves, so none is placed behind one that may fit anywhere."""
    for route in routes:
        if not isinstance(route, Route) or not _has_a_place(route.path):
            return
        yield route


def _has_a_place(path: str) -> bool:
    """Its head is fixed words, and no parameter takes more than one step."""
    return "{" not in "".join(path.split("/")[:_HEAD]) and ":path}" not in path
