"""How Python values travel to PostgreSQL, with the parameter's type as the guide.

Text and bytes go as they are, everything else in the words of SQL.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.postgres import types
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

from attune.store.values import json_text

Encoder = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that the server has read already."""

    name: bytes
    encoders: tuple[Encoder, ...]
    formats: list[int]
    columns: tuple[str, ...]

    def encoded(self, values: Sequence[Any]) -> list[bytes | None]:
        pairs = zip(self.encoders, values, strict=True)
        return [None if value is None else encode(value) for encode, value in pairs]


def prepared(name: bytes, told: PGresult) -> Prepared:
    """By what the server says of it."""
    kinds = [told.param_type(number) for number in range(told.nparams)]
    encoders = [_ENCODERS.get(kind, (_word, Format.TEXT)) for kind in kinds]
    return Prepared(
        name=name,
        encoders=tuple(encode for encode, _ in encoders),
        formats=[format_ for _, format_ in encoders],
        columns=tuple((told.fname(number) or b"").decode() for number in range(told.nfields)),
    )


def _word(value: object) -> bytes:
    return str(value).encode()


def _text(value: str) -> bytes:
    return value.encode()


def _json(value: object) -> bytes:
    return json_text(value).encode()


def _moment(value: datetime) -> bytes:
    return value.isoformat().encode()


def _array(element: Callable[[Any], str]) -> Encoder:
    def encode(values: Collection[Any]) -> bytes:
        if None in values:
            words = ("NULL" if value is None else element(value) for value in values)
            return _sent(f"{{{','.join(words)}}}")
        return _sent(f"{{{','.join(map(element, values))}}}")

    return encode


def _sent(array: str) -> bytes:
    """libpq takes an array's text up to the first zero byte."""
    if "\0" in array:
        raise psycopg.DataError("a text has a zero byte")
    return array.encode()


def _quoted(value: str) -> str:
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _hexadecimal(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


_NUMBERS: Final = ("int2", "int4", "int8", "float4", "float8", "numeric", "bool")
_ENCODERS: Final[dict[int, tuple[Encoder, Format]]] = {
    types["text"].oid: (_text, Format.BINARY),
    types["varchar"].oid: (_text, Format.BINARY),
    types["bytea"].oid: (bytes, Format.BINARY),
    types["json"].oid: (_text, Format.TEXT),
    types["jsonb"].oid: (_json, Format.TEXT),
    types["timestamptz"].oid: (_moment, Format.TEXT),
    **{types[name].array_oid: (_array(str), Format.TEXT) for name in _NUMBERS},
    types["text"].array_oid: (_array(_quoted), Format.TEXT),
    types["varchar"].array_oid: (_array(_quoted), Format.TEXT),
    types["bytea"].array_oid: (_array(_hexadecimal), Format.TEXT),
    types["jsonb"].array_oid: (_array(lambda value: _quoted(json_text(value))), Format.TEXT),
    types["timestamptz"].array_oid: (_array(datetime.isoformat), Format.TEXT),
    types["uuid"].array_oid: (_array(str), Format.TEXT),
}
