"""core.http_request. An answer of any status completes it; no answer fails it.

No sentence here repeats a header, a body or a library's message about them: they may hold secrets. Nor does
one say "timed out", which is what an execution's own limit is called.
"""

import asyncio
import codecs
import ssl
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final

import httpx2
import msgspec

from attune.kernel.urls import masked
from attune.worker.limits import until_ended
from attune.worker.native import NativeEnd, Surroundings, parameters_as

_LARGEST_BODY: Final = 10 * 1024 * 1024


class AuthType(StrEnum):
    NONE = "none"
    BASIC = "basic"
    BEARER = "bearer"


class HttpParameters(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` is in seconds, for the whole exchange with all its redirects."""

    url: str
    method: str = "GET"
    headers: dict[str, str | int | float | bool] = {}
    body: str | None = None
    json_body: Any = msgspec.UNSET
    query_params: dict[str, Any] = {}
    timeout: float = 30.0
    verify_ssl: bool = True
    auth_type: AuthType = AuthType.NONE
    auth_username: str = ""
    auth_password: str = ""
    auth_token: str = ""
    follow_redirects: bool = True
    max_redirects: int = 10


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The action's data; `status_code` is null where no answer came."""

    status_code: int | None
    headers: dict[str, str]
    body: str
    json: Any
    elapsed_ms: int
    url: str
    success: bool
    error: str | msgspec.UnsetType = msgspec.UNSET
    truncated: bool | msgspec.UnsetType = msgspec.UNSET


async def http_request(parameters: Mapping[str, Any], around: Surroundings) -> NativeEnd:
    wanted = parameters_as(HttpParameters, parameters)
    clock = around.clock
    began = clock.monotonic()
    exchange = asyncio.ensure_future(_exchange(wanted))
    try:
        stop = await until_ended(
            exchange, cancel=asyncio.Event(), clock=clock, timeout=wanted.timeout
        )
        elapsed = round((clock.monotonic() - began) * 1000)
        if stop:
            return _no_answer(wanted, elapsed, f"No answer came within {wanted.timeout:g} s.")
        return NativeEnd(data=msgspec.to_builtins(_answer(*exchange.result(), elapsed)))
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError, ssl.SSLError) as error:
        elapsed = round((clock.monotonic() - began) * 1000)
        return _no_answer(wanted, elapsed, _sentence(error))
    finally:
        exchange.cancel()
        await asyncio.wait({exchange})


async def _exchange(wanted: HttpParameters) -> tuple[httpx2.Response, bytes]:
    """The answer and its body, cut where it is longer than what is kept."""
    client = httpx2.AsyncClient(
        verify=_tls(wanted.verify_ssl),
        timeout=None,
        follow_redirects=wanted.follow_redirects,
        max_redirects=wanted.max_redirects,
    )
    async with client, client.stream(**_request(wanted)) as response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _LARGEST_BODY:
                break
        return response, bytes(body)


def _request(wanted: HttpParameters) -> dict[str, Any]:
    headers = {name: _word(value) for name, value in wanted.headers.items()}
    if wanted.auth_type is AuthType.BEARER:
        headers["Authorization"] = f"Bearer {wanted.auth_token}"
    request: dict[str, Any] = {
        "method": wanted.method.upper(),
        "url": wanted.url,
        "headers": headers,
    }
    if wanted.query_params:
        request["params"] = {
            name: [_word(each) for each in value] if isinstance(value, list) else _word(value)
            for name, value in wanted.query_params.items()
        }
    if wanted.auth_type is AuthType.BASIC:
        request["auth"] = (wanted.auth_username, wanted.auth_password)
    if wanted.body is not None:
        request["content"] = wanted.body
    elif wanted.json_body is not msgspec.UNSET:
        request["content"] = msgspec.json.encode(wanted.json_body)
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
    return request


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@cache
def _tls(verify: bool) -> ssl.SSLContext:
    return httpx2.create_ssl_context(verify=verify)


def _answer(response: httpx2.Response, body: bytes, elapsed: int) -> Answer:
    cut = len(body) > _LARGEST_BODY
    text = _text(body[:_LARGEST_BODY], response.charset_encoding)
    return Answer(
        status_code=response.status_code,
        headers=dict(response.headers),
        body=text,
        json=_json(text),
        elapsed_ms=elapsed,
        url=masked(str(response.url)),
        success=response.is_success,
        truncated=True if cut else msgspec.UNSET,
    )


def _text(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(codecs.lookup(charset or "utf-8").name, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _no_answer(wanted: HttpParameters, elapsed: int, error: str) -> NativeEnd:
    answer = Answer(
        status_code=None,
        headers={},
        body="",
        json=None,
        elapsed_ms=elapsed,
        url=masked(wanted.url),
        success=False,
        error=error,
    )
    return NativeEnd(exit_code=1, data=msgspec.to_builtins(answer), error=error)


def _sentence(error: Exception) -> str:
    match error:
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return "The url is not one of http or https."
        case httpx2.TooManyRedirects():
            return "The server redirected too often."
        case httpx2.ConnectError() | ssl.SSLError():
            return f"Could not connect: {str(error).replace('timed out', 'got no answer')}."
        case httpx2.LocalProtocolError() | UnicodeError():
            return "The request cannot be sent: a header or the url holds what HTTP does not allow."
        case httpx2.RemoteProtocolError() | httpx2.DecodingError():
            return "The server's answer is not proper HTTP."
        case _:
            return f"The connection broke before the answer was complete ({type(error).__name__})."
