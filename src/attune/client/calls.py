"""One request to the API as a value: what is sent, how its answer is read, and whether it may be sent twice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from attune.client.models import Page

T = TypeVar("T")


class Wrapped(msgspec.Struct, Generic[T], frozen=True):
    data: T


@dataclass(frozen=True)
class Upload:
    """A file of a multipart form, with the form's other fields."""

    field: str
    file_name: str
    content: bytes
    values: Mapping[str, str]


@dataclass(frozen=True)
class Call(Generic[T]):
    """`shape` is the type of the whole answer; `wrapped` says that what is wanted stands in its `data`.

    `repeatable` may be sent again when the connection breaks, because the server then does nothing twice.
    `anonymous` carries no token: it is what one gets a token with.
    """

    method: str
    path: str
    shape: Any
    wrapped: bool = False
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    upload: Upload | None = None
    repeatable: bool = False
    anonymous: bool = False

    def decode(self, content: bytes) -> T:
        answer = _decoder(self.shape).decode(content)
        result: T = answer.data if self.wrapped else answer
        return result


def get(path: str, kind: type[T]) -> Call[T]:
    return Call("GET", path, _in_data(kind), wrapped=True, repeatable=True)


def get_plain(path: str, kind: type[T]) -> Call[T]:
    """For the few answers that are the object itself."""
    return Call("GET", path, kind, repeatable=True)


def get_page(path: str, kind: type[T], query: Mapping[str, Any]) -> Call[Page[T]]:
    return Call("GET", path, Page[kind], query=query, repeatable=True)  # type: ignore[valid-type]


def post(
    path: str,
    kind: type[T],
    body: Any = None,
    *,
    repeatable: bool = False,
    anonymous: bool = False,
) -> Call[T]:
    return Call(
        "POST",
        path,
        _in_data(kind),
        wrapped=True,
        body=body,
        repeatable=repeatable,
        anonymous=anonymous,
    )


def put(path: str, kind: type[T], body: Any) -> Call[T]:
    return Call("PUT", path, _in_data(kind), wrapped=True, body=body)


def upload(path: str, kind: type[T], form: Upload) -> Call[T]:
    return Call("POST", path, _in_data(kind), wrapped=True, upload=form)


def delete(path: str, kind: type[T]) -> Call[T]:
    return Call("DELETE", path, kind)


def path_of(*steps: object) -> str:
    """Each step is quoted, so that no ref can lead to another path."""
    return "/api/v1/" + "/".join(quote(str(step), safe="") for step in steps)


def _in_data(kind: Any) -> Any:
    return Wrapped[kind]


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    """Made once. Asked by the type each time, msgspec would also lose a Ctrl-C that comes while it looks for the type."""
    return msgspec.json.Decoder(shape)
