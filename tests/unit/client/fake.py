"""A server that plays its part in memory, for either client: it answers by path, and remembers what it was asked."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2

MOMENT = "2026-01-01T12:00:00Z"
URL = "http://attune.test"

Answer = httpx2.Response | Exception | Callable[[httpx2.Request], httpx2.Response]


class FakeServer:
    """An answer that was given several times is taken in turn; the last one stays."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}

    def on(self, method: str, path: str, *answers: Answer) -> None:
        self._answers[method, path] = list(answers)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        known = self._answers.get((request.method, request.url.path))
        if known is None:
            return refusal(404, "No such path.")
        answer = known.pop(0) if len(known) > 1 else known[0]
        if isinstance(answer, Exception):
            raise answer
        return _fresh(answer(request) if callable(answer) else answer)

    def asked(self, method: str, path: str) -> list[httpx2.Request]:
        return [each for each in self.requests if (each.method, each.url.path) == (method, path)]

    def bodies(self, method: str, path: str) -> list[Any]:
        return [json.loads(each.content) for each in self.asked(method, path)]


def _fresh(answer: httpx2.Response) -> httpx2.Response:
    """A client uses up what it gets, and an answer may be given again."""
    headers = answer.headers
    if isinstance(answer.stream, Broken):
        return httpx2.Response(answer.status_code, headers=headers, stream=answer.stream)
    return httpx2.Response(answer.status_code, headers=headers, content=answer.content)


class Broken(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Events, and then silence that lasts too long."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        raise httpx2.ReadTimeout("quiet")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        raise httpx2.ReadTimeout("quiet")


def data(value: Any, status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, json={"data": value})


def plain(value: Any) -> httpx2.Response:
    return httpx2.Response(200, json=value)


def page(items: list[Any], number: int = 1, *, more: bool = False) -> httpx2.Response:
    pagination = {
        "page": number,
        "page_size": 50,
        "has_next": more,
        "has_previous": number > 1,
    }
    return httpx2.Response(200, json={"items": items, "pagination": pagination})


def refusal(status: int, sentence: str, **more: Any) -> httpx2.Response:
    return httpx2.Response(status, json={"error": sentence, **more})


def events(*pairs: tuple[str, str], broken: bool = False) -> httpx2.Response:
    """Server-sent events of a name and a text; `broken` leaves the stream open and silent."""
    text = "".join(_event(name, text) for name, text in pairs).encode()
    headers = {"content-type": "text/event-stream"}
    if broken:
        return httpx2.Response(200, headers=headers, stream=Broken(text))
    return httpx2.Response(200, headers=headers, content=text)


def _event(name: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {name}\n{lines}\n" if name else f"{lines}\n"


def change(id_: int, status: str) -> tuple[str, str]:
    return "", json.dumps({"entity_type": "execution", "entity_id": id_, "status": status})


def execution(id_: int = 7, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "action_ref": "core.echo",
        "status": status,
        "created": MOMENT,
        "updated": MOMENT,
        "config": {},
        "result": None,
        "a_field_of_tomorrow": 1,
        **more,
    }


def rule(ref: str = "demo.on_alarm", id_: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "ref": ref,
        "label": "On alarm",
        "enabled": True,
        "pack_ref": "demo",
        "trigger_ref": "demo.alarm",
        "action_ref": "core.echo",
        "action_params": {},
        "trigger_params": {},
        "conditions": {},
        "created": MOMENT,
        "updated": MOMENT,
        **more,
    }


def action(ref: str = "core.echo", id_: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "ref": ref,
        "label": "Echo",
        "pack_ref": ref.partition(".")[0],
        "entrypoint": "echo",
        "runtime_ref": "core.native",
        "param_schema": None,
        "out_schema": None,
        "created": MOMENT,
        "updated": MOMENT,
        **more,
    }


def pack(ref: str = "demo", id_: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "ref": ref,
        "label": "Demo",
        "version": "1.0.0",
        "conf_schema": {},
        "config": {},
        "meta": {},
        "tags": [],
        "created": MOMENT,
        "updated": MOMENT,
        **more,
    }


def tokens(name: str = "new") -> dict[str, Any]:
    return {
        "access_token": f"{name}-access",
        "refresh_token": f"{name}-refresh",
        "expires_in": 3600,
        "token_type": "Bearer",
        "user": {"id": 1, "login": "ann", "display_name": None},
    }
