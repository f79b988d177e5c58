"""The index finds the route that the router would take, and leaves everything else to the router."""

import random
from unittest.mock import Mock

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match, Mount, Route

from attune.api.app import create_app
from attune.api.parts import ApiParts
from attune.api.route_index import RouteIndex, install_route_index
from tests.contract.api.asgi import Client, Reply, scope_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FIRST = ["/fixed", "/api/v1/things/{id}", "/api/v1/things/word", "/api/v1/things/{id}/{more}"]
LATER = ["/{anything}", "/api/v1/other", "/api/v1/things/{id}/{more}/end"]


def application(paths: list[str], *, indexed: bool) -> FastAPI:
    app = FastAPI(openapi_url=None)
    for path in paths:

        async def tell(path: str = path) -> PlainTextResponse:
            return PlainTextResponse(path)

        app.add_api_route(path.replace("{path}", "{path:path}"), tell, methods=["GET", "PUT"])
    if indexed:
        install_route_index(app)
    return app


async def both(paths: list[str], method: str, path: str) -> tuple[Reply, Reply]:
    one, other = (Client(application(paths, indexed=each)) for each in (True, False))
    return await one.send(method, path), await other.send(method, path)


@pytest.mark.parametrize("paths", [FIRST, FIRST + LATER, LATER + FIRST, ["/api/{path}", *FIRST]])
@pytest.mark.parametrize(
    "path",
    [
        "/fixed",
        "/fixed/",
        "/fixed%0A",
        "/FIXED",
        "//fixed",
        "/",
        "/nothing",
        "/api/v1/things",
        "/api/v1/things/",
        "/api/v1/things/7",
        "/api/v1/things/7/",
        "/api/v1/things/7%2F8",
        "/api/v1/things/word",
        "/api/v1/things/word%0A",
        "/api/v1/things//8",
        "/api/v1/things/7/8",
        "/api/v1/things/7/8/end",
        "/api/v1/other",
        "/api/v1/other/",
    ],
)
async def test_every_answer_is_the_router_s(paths: list[str], path: str) -> None:
    for method in METHODS:
        indexed, usual = await both(paths, method, path)
        assert indexed == usual


async def test_what_it_does_not_find_is_refused_in_the_router_s_way() -> None:
    client = Client(application(FIRST, indexed=True))
    refused = await client.send("DELETE", "/api/v1/things/7")
    assert (refused.status, set(refused.headers["allow"].split(", "))) == (405, {"GET", "PUT"})
    assert (await client.get("/fixed/")).headers["location"] == "http://127.0.0.1/fixed"
    assert (await client.get("/nothing")).status == 404


def found(index: RouteIndex, method: str, path: str) -> BaseRoute | None:
    hit = index._found(scope_of(method, path, "", {}))
    return None if hit is None else hit[0]


def test_every_route_of_the_api_is_found_where_the_router_finds_it() -> None:
    app = create_app(Mock(spec=ApiParts, **dict.fromkeys(ApiParts.__annotations__, Mock())))
    index, chance = RouteIndex(app.routes, app), random.Random(1)
    for route in app.routes:
        assert isinstance(route, Route)
        path = "/".join(
            chance.choice(["7", "core.noop", "stdout"]) if "{" in step else step
            for step in route.path.split("/")
        )
        for method in route.methods or ():
            scope = scope_of(method, path, "", {})
            first = next(it for it in app.routes if it.matches(scope)[0] is Match.FULL)
            assert found(index, method, path) is first


def test_nothing_is_placed_behind_a_route_that_may_fit_anywhere() -> None:
    routes = [Route(path, PlainTextResponse("here"), methods=["GET"]) for path in ("/a", "/b")]
    mount = Mount("/", PlainTextResponse("mounted"))
    index = RouteIndex([routes[0], mount, routes[1]], mount)
    assert found(index, "GET", "/a") is routes[0]
    assert found(index, "GET", "/b") is None
