"""How Python values travel to the database and back, with the target type as the guide.

PostgreSQL has types of its own for time, truth and JSON. SQLite has integers and text: a time is its
microseconds since 1970, which sort and compare exactly; JSON is its text.
"""

import inspect
import types
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from attune.kernel.errors import StepMisuse

Converter = Callable[[Any], Any]
Row = Sequence[Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Json(msgspec.Struct, frozen=True):
    """Marks a parameter as JSON, where its Python type alone would not tell (a string, a list, a number)."""

    value: Any


def json_text(value: object) -> str:
    return msgspec.json.encode(value.value if isinstance(value, Json) else value).decode()


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def sqlite_value(value: Any) -> Any:
    """A parameter as SQLite takes it."""
    encode = _SQLITE_ENCODERS.get(type(value), _learnt)
    return value if encode is None else encode(value)


def sqlite_list(values: Sequence[Any]) -> str:
    if not PLAIN.issuperset(map(type, values)):
        values = [sqlite_value(value) for value in values]
    return msgspec.json.encode(values).decode()


def sqlite_rows(rows: Sequence[Sequence[Any]], types: tuple[str, ...]) -> str:
    """A table of columns with these SQL types, as JSON."""
    encoders = _column_encoders(types)
    if not encoders:
        return msgspec.json.encode(rows).decode()
    encoded = [list(row) for row in rows]
    for row in encoded:
        for i, encode in encoders:
            if row[i] is not None:
                row[i] = encode(row[i])
    return msgspec.json.encode(encoded).decode()


@cache
def _column_encoders(types: tuple[str, ...]) -> tuple[tuple[int, Converter], ...]:
    encoders: dict[str, Converter] = {"jsonb": json_text, "timestamptz": to_micros}
    return tuple((i, encoders[kind]) for i, kind in enumerate(types) if kind in encoders)


def _learnt(value: Any) -> Any:
    """The first value of a type decides how all of them travel."""
    kind = type(value)
    if isinstance(value, Enum):
        _SQLITE_ENCODERS[kind] = attrgetter("_value_")
    else:
        _SQLITE_ENCODERS[kind] = json_text if isinstance(value, msgspec.Struct) else None
    return sqlite_value(value)


# What SQLite takes as it is.
PLAIN: frozenset[type] = frozenset({int, str, float, bool, types.NoneType})

_SQLITE_ENCODERS: dict[type, Converter | None] = {
    **dict.fromkeys(PLAIN),
    datetime: to_micros,
    UUID: str,
    Json: json_text,
    dict: json_text,
    list: sqlite_list,
    tuple: sqlite_list,
    frozenset: lambda values: sqlite_list(sorted(values)),
    msgspec.Raw: lambda raw: bytes(raw).decode(),
}


_SQLITE_DECODERS: dict[type, Converter] = {datetime: from_micros, bool: bool, UUID: UUID}


@cache
def row_reader(kind: Any, columns: tuple[str, ...], sqlite: bool) -> Callable[[Row], Any]:
    """How to make a `kind` out of a row with these columns: a struct by name, anything else from the first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct_reader(kind, columns, sqlite)
    convert = converter_for(kind | None, sqlite)
    if convert is None:
        return lambda row: row[0]
    return lambda row: convert(row[0])


def _struct_reader(
    kind: type[msgspec.Struct], columns: tuple[str, ...], sqlite: bool
) -> Callable[[Row], Any]:
    _check_fit(kind, columns)
    hints = get_type_hints(kind)
    converters = {column: converter_for(hints[column], sqlite) for column in columns}
    converting = [(i, c) for i, name in enumerate(columns) if (c := converters[name])]
    if columns == kind.__struct_fields__ and _takes_positions(kind):
        return lambda row: kind(*_converted(row, converting))
    return lambda row: kind(**dict(zip(columns, _converted(row, converting), strict=True)))


def _converted(row: Row, converting: Sequence[tuple[int, Converter]]) -> Sequence[Any]:
    if not converting:
        return row
    values = list(row)
    for i, convert in converting:
        values[i] = convert(values[i])
    return values


def _check_fit(kind: type[msgspec.Struct], columns: tuple[str, ...]) -> None:
    missing = {f.name for f in msgspec.structs.fields(kind) if f.required} - set(columns)
    unknown = set(columns) - set(kind.__struct_fields__)
    if missing or unknown:
        raise StepMisuse(
            f"the query does not fit {kind.__name__}:"
            f" it lacks {sorted(missing)}, and {sorted(unknown)} have no place in it"
        )


def _takes_positions(kind: type[msgspec.Struct]) -> bool:
    parameters = inspect.signature(kind).parameters.values()
    return all(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in parameters)


def converter_for(kind: Any, sqlite: bool) -> Converter | None:
    """From the driver's value to the Python type; None where they are the same."""
    inner, optional = _unwrapped(kind)
    convert = _plain_converter(inner, sqlite)
    if convert is None or not optional:
        return convert
    return lambda value: None if value is None else convert(value)


def _unwrapped(kind: Any) -> tuple[Any, bool]:
    optional = kind is Any or kind is object
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not types.NoneType]
        optional = len(members) < len(get_args(kind))
        if len(members) > 1:
            return object, optional
        kind = members[0]
    while isinstance(kind, NewType):
        kind = kind.__supertype__
    return kind, optional


def _plain_converter(kind: Any, sqlite: bool) -> Converter | None:
    if kind in (int, str, float, bytes):
        return None
    if kind in _SQLITE_DECODERS:
        return _SQLITE_DECODERS[kind] if sqlite else None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind._value2member_map_.__getitem__
    if kind is msgspec.Raw:
        return lambda text: msgspec.Raw(text.encode())
    return msgspec.json.Decoder(kind).decode
