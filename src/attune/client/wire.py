"""A call as an HTTP request, and what an answer or its absence means."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import httpx2
import msgspec

from attune.client.calls import Call
from attune.client.errors import BadAnswer, ServerAway, error_class
from attune.client.servers import Server

_CONNECT_SECONDS: Final = 5.0


class _Refusal(msgspec.Struct, frozen=True):
    error: str
    code: str | None = None
    details: Any = None


def request_of(
    call: Call[Any], server: Server, token: str | None, *, read_seconds: float, **headers: str
) -> httpx2.Request:
    if token is not None and not call.anonymous:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.Request(
        call.method,
        _address(server.url + call.path),
        params=_query(call.query) if call.query else None,
        headers={"User-Agent": "attune-client", **headers, **_content_type(call)},
        extensions={"timeout": _patience(read_seconds)},
        **_content(call),
    )


def check(response: httpx2.Response, content: bytes) -> None:
    """Raise the refusal that an answer is, if it is one."""
    status = response.status_code
    if status < 400:
        return
    try:
        refusal = msgspec.json.decode(content, type=_Refusal)
    except msgspec.MsgspecError:
        refusal = _Refusal(f"The server answered {status} {response.reason_phrase}.")
    raise error_class(status)(
        refusal.error,
        status=status,
        code=refusal.code,
        details=refusal.details if isinstance(refusal.details, dict) else None,
        retry_after=_seconds(response.headers.get("Retry-After")),
    )


def bad_answer(server: Server, why: str) -> BadAnswer:
    return BadAnswer(f"What answers at {server.url} does not speak this API: {why}.")


@contextmanager
def explained(server: Server) -> Iterator[None]:
    """A failure on the way is told in one sentence that says where it was tried."""
    place = f"{server.url} ({server.origin})"
    try:
        yield
    except httpx2.SSEError as error:
        raise bad_answer(server, "it did not answer with events") from error
    except httpx2.ConnectError as error:
        raise ServerAway(f"Cannot reach Attune at {place}.", url=server.url) from error
    except httpx2.TimeoutException as error:
        raise ServerAway(f"No answer came in time from {place}.", url=server.url) from error
    except httpx2.TransportError as error:
        raise ServerAway(f"The connection to {place} broke.", url=server.url) from error


@lru_cache(maxsize=256)
def _address(url: str) -> httpx2.URL:
    """Read once: that takes longer than all else about a request, and most go to the same few paths."""
    return httpx2.URL(url)


def _patience(seconds: float) -> dict[str, float]:
    connect = min(_CONNECT_SECONDS, seconds)
    return {"connect": connect, "read": seconds, "write": seconds, "pool": seconds}


def _query(values: Mapping[str, Any]) -> dict[str, str]:
    words = {True: "true", False: "false"}
    return {
        name: words[value] if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _content(call: Call[Any]) -> dict[str, Any]:
    if call.upload is not None:
        upload = call.upload
        file = (upload.file_name, upload.content, "application/gzip")
        return {"files": {upload.field: file}, "data": dict(upload.values)}
    return {} if call.body is None else {"content": msgspec.json.encode(call.body)}


def _content_type(call: Call[Any]) -> dict[str, str]:
    return {} if call.body is None else {"Content-Type": "application/json"}


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() else None
