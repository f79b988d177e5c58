"""An HTTP server on the loopback that answers as a test tells it, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple


class Asked(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answering = Callable[[Asked], bytes | None]


class Web:
    """`answering` gives the whole answer for a request; None keeps the client waiting."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answering: Answering = lambda _: answer()
        self.url = ""
        self.heard = asyncio.Event()
        self.over = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = [line.split(": ", 1) for line in head[1:] if line]
        headers = {name.lower(): value for name, value in lines}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, target, _ = head[0].split(" ")
        self.asked.append(Asked(method, target, headers, body))
        self.heard.set()
        reply = self.answering(self.asked[-1])
        if reply is None:
            await self.over.wait()
        else:
            writer.write(reply)
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Web]:
    web = Web()
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    web.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield web
    finally:
        web.over.set()
        server.close()
        await server.wait_closed()


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    lines = {"content-length": str(len(body)), "connection": "close"}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
