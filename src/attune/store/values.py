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
    if not _column_encoders(types):
        return msgspec.json.encode(rows).decode()
    return msgspec.json.encode([sqlite_row(row, types) for row in rows]).decode()


def sqlite_row(row: Sequence[Any], types: tuple[str, ...]) -> list[Any]:
    """The values of a row with these SQL types; what else SQLite would not take is left for its own encoder."""
    encoded = list(row)
    for i, encode in _column_encoders(types):
        if encoded[i] is not None:
            encoded[i] = encode(encoded[i])
    return encoded


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
    convert = _converter(kind, sqlite)
    if convert is None:
        return lambda row: row[0]
    return lambda row: None if row[0] is None else convert(row[0])


def _struct_reader(
    kind: type[msgspec.Struct], columns: tuple[str, ...], sqlite: bool
) -> Callable[[Row], Any]:
    """One expression for the whole row: this runs for each row that is ever read."""
    _check_fit(kind, columns)
    hints = get_type_hints(kind)
    known: dict[str, Any] = {"kind": kind}
    values = []
    for number, column in enumerate(columns):
        value, convert = f"row[{number}]", _converter(hints[column], sqlite)
        if convert is not None:
            known[f"convert_{number}"] = convert
            value = f"convert_{number}({value})"
            if _unwrapped(hints[column])[1]:
                value = f"None if row[{number}] is None else {value}"
        values.append(value)
    by_place = columns == kind.__struct_fields__ and _takes_positions(kind)
    names = [""] * len(columns) if by_place else [f"{column}=" for column in columns]
    arguments = ", ".join(name + value for name, value in zip(names, values, strict=True))
    return eval(f"lambda row: kind({arguments})", known)  # type: ignore[no-any-return]  # noqa: S307 - of names of our own


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


def _converter(kind: Any, sqlite: bool) -> Converter | None:
    """From the driver's value, if there is one, to the Python type; None where they are the same."""
    return _plain_converter(_unwrapped(kind)[0], sqlite)


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
