"""What reaches the application, byte by byte, whatever a client sends."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from attune.services.http import HttpServer
from attune.services.http_protocol import LARGEST_HEAD

H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
PATIENCE = 20
TURNS = 20


async def echo(request: Request) -> JSONResponse:
    body = await request.body()
    return JSONResponse({"body": body.decode(), "headers": sorted(dict(request.headers))})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    app = Starlette(routes=[Route("/echo", echo, methods=["GET", "POST"])])
    server = HttpServer(app, "127.0.0.1", 0)
    await server.start()
    yield server._port
    await server.stop()


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> "Wire":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, *pieces: bytes) -> None:
        """Each arrives on its own: the loop, which is the server's as well, turns in between."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            for _ in range(TURNS):
                await asyncio.sleep(0)

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            [length] = [
                int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")
            ]
            return int(head.split()[1]), await self._reader.readexactly(length)

    async def is_closed(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read() == b""
            except ConnectionResetError:
                return True

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def wire(port: int) -> AsyncIterator[Wire]:
    wire = await Wire.to(port)
    yield wire
    wire.close()


def post(body: bytes, fields: bytes = b"") -> bytes:
    length = str(len(body)).encode()
    return (
        b"POST /echo HTTP/1.1\r\nHost: x\r\n"
        + fields
        + b"Content-Length: "
        + length
        + b"\r\n\r\n"
        + body
    )


def body_of(answer: tuple[int, bytes]) -> Any:
    status, content = answer
    assert status == 200
    return json.loads(content)


@pytest.mark.parametrize("cut", [None, 1, 40, 120, -6, -1])
async def test_the_body_of_a_request_that_offers_an_upgrade_arrives(
    wire: Wire, cut: int | None
) -> None:
    request = post(b"a body", H2C)
    await wire.send(*([request] if cut is None else [request[:cut], request[cut:]]))
    assert body_of(await wire.answer())["body"] == "a body"
    await wire.send(post(b"and one more"))
    assert body_of(await wire.answer())["body"] == "and one more"


async def test_an_offer_without_a_body_is_answered_as_if_it_were_none(wire: Wire) -> None:
    await wire.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n" + H2C + b"\r\n")
    assert "upgrade" in body_of(await wire.answer())["headers"]


async def test_requests_of_one_connection_are_answered_in_their_order(wire: Wire) -> None:
    await wire.send(post(b"one") + post(b"two") + post(b"three"))
    bodies = [body_of(await wire.answer())["body"] for _ in range(3)]
    assert bodies == ["one", "two", "three"]


async def test_an_offer_behind_a_request_that_is_being_answered_ends_the_connection(
    wire: Wire,
) -> None:
    await wire.send(post(b"one") + post(b"two", H2C))
    assert body_of(await wire.answer())["body"] == "one"
    assert await wire.is_closed()


async def test_a_head_without_an_end_is_refused_and_kept_nowhere(wire: Wire) -> None:
    await wire.send(b"GET /echo HTTP/1.1\r\nHost: x\r\nX-Long: ")
    for _ in range(5):
        await wire.send(b"a" * (LARGEST_HEAD // 4))
    assert await wire.answer() == (431, b"")
    assert await wire.is_closed()


async def test_a_body_in_pieces_may_be_larger_than_any_head(wire: Wire) -> None:
    pieces = [b"%x\r\n" % LARGEST_HEAD + b"b" * LARGEST_HEAD + b"\r\n"] * 3
    await wire.send(
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        *pieces,
        b"0\r\n\r\n",
    )
    assert len(body_of(await wire.answer())["body"]) == 3 * LARGEST_HEAD


async def test_a_trailer_is_no_header(wire: Wire) -> None:
    await wire.send(
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
        b"Authorization: Bearer forged\r\n\r\n"
    )
    answer = body_of(await wire.answer())
    assert answer["body"] == "hi"
    assert "authorization" not in answer["headers"]


async def test_a_trailer_without_an_end_closes_the_connection(wire: Wire) -> None:
    await wire.send(
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Long: "
    )
    for _ in range(5):
        await wire.send(b"a" * (LARGEST_HEAD // 4))
    assert await wire.is_closed()


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost : x\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(wire: Wire, request_: bytes) -> None:
    await wire.send(request_)
    status, _ = await wire.answer()
    assert status == 400
    assert await wire.is_closed()


async def test_a_wish_for_a_tunnel_is_refused(wire: Wire) -> None:
    await wire.send(b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n")
    status, _ = await wire.answer()
    assert 400 <= status < 500
