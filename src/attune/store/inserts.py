"""A batch insert: worked out once for a table and a struct, then few statements for any number of rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, starmap
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from attune.kernel.errors import StepMisuse
from attune.store.values import json_text, to_micros

Encoder = Callable[[Any], Any]

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
_ROWS_AT_ONCE: Final = (50, 10, 1)  # in a statement for SQLite, which keeps few of them prepared


@dataclass(frozen=True)
class Insert:
    """How structs become the statements and values of each database.

    `many` is PostgreSQL's statement for more than one. `sparse` is the row as JSON, without what is null: to read that would
    take the server a third of its time.
    """

    table: str
    many: str
    skip_existing: bool
    pick: Callable[[msgspec.Struct], tuple[Any, ...]]
    sparse: type[msgspec.Struct] | None
    columns: "tuple[_Column, ...]"

    def for_postgresql(self, rows: Sequence[msgspec.Struct]) -> tuple[str, list[Any]]:
        """The statement and its values: those of one row as they are, else one JSON text for all of them, or where there
        are bytes one array for each column."""
        if len(rows) == 1:
            return self._one(rows[0])
        values = map(self.pick, rows)
        if self.sparse is not None:
            return self.many, [json_text([*starmap(self.sparse, values)])]
        return self.many, list(zip(*values, strict=True))

    def _one(self, row: msgspec.Struct) -> tuple[str, list[Any]]:
        """Without what is null."""
        pairs = zip(self.columns, self.pick(row), strict=True)
        sent = [(one.name, value) for one, value in pairs if value is not None or one.has_default]
        names = tuple(name for name, _ in sent)
        text = _postgresql_text(self.table, names, self.skip_existing)
        return text, [value for _, value in sent]

    def for_sqlite(self, rows: Sequence[msgspec.Struct]) -> Iterator[tuple[str, list[Any]]]:
        """Statements for some rows each, and their values. What is null in all of them is left out: the driver takes
        longer for a null than for a value."""
        start = 0
        while start < len(rows):
            count = next(size for size in _ROWS_AT_ONCE if size <= len(rows) - start)
            yield self._some(rows[start : start + count])
            start += count

    def _some(self, rows: Sequence[msgspec.Struct]) -> tuple[str, list[Any]]:
        names: list[str] = []
        sent: list[Sequence[Any]] = []
        columns = zip(*map(self.pick, rows), strict=True)
        for (name, encode, has_default), values in zip(self.columns, columns, strict=True):
            if values[0] is None and not has_default and values.count(None) == len(values):
                continue
            names.append(name)
            sent.append(values if encode is None else _encoded(values, encode))
        text = _sqlite_text(self.table, tuple(names), len(rows), self.skip_existing)
        return text, [*chain.from_iterable(zip(*sent, strict=True))]


class _Column(NamedTuple):
    """`encode` is how SQLite takes a value that is not null. One with a default is never left out."""

    name: str
    encode: Encoder | None
    has_default: bool


def _encoded(values: Sequence[Any], encode: Encoder) -> list[Any]:
    return [None if value is None else encode(value) for value in values]


@cache
def insert_plan(table: sa.Table, kind: type[msgspec.Struct], skip_existing: bool) -> Insert:
    names = kind.__struct_fields__
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        raise StepMisuse(f"{table.name} has no columns {unknown}, which {kind.__name__} has")
    types = [_postgresql_type(table.columns[name]) for name in names]
    as_json = "bytea" not in types
    source = _from_json(names, types) if as_json else _from_arrays(names, types)
    return Insert(
        table=table.name,
        many=_insert_text(table.name, names, source, skip_existing),
        skip_existing=skip_existing,
        pick=_picker(names),
        sparse=_sparse(kind.__name__, names) if as_json else None,
        columns=tuple(
            _Column(
                name,
                _SQLITE_ENCODERS.get(type_),
                table.columns[name].server_default is not None,
            )
            for name, type_ in zip(names, types, strict=True)
        ),
    )


_SQLITE_ENCODERS: dict[str, Encoder] = {
    "jsonb": json_text,
    "timestamp with time zone": to_micros,
    "uuid": str,
}


def _insert_text(table: str, names: Sequence[str], source: str, skip_existing: bool) -> str:
    end = " ON CONFLICT DO NOTHING" if skip_existing else ""
    return f"INSERT INTO {table} ({', '.join(names)}) {source}{end}"


@cache
def _postgresql_text(table: str, names: tuple[str, ...], skip_existing: bool) -> str:
    numbers = ", ".join(f"${number}" for number, _ in enumerate(names, start=1))
    return _insert_text(table, names, f"VALUES ({numbers})", skip_existing)


@cache
def _sqlite_text(table: str, names: tuple[str, ...], count: int, skip_existing: bool) -> str:
    row = f"({', '.join('?' for _ in names)})"
    source = f"VALUES {', '.join([row] * count)}"
    return _insert_text(table, names, source, skip_existing)


def _from_json(names: tuple[str, ...], types: list[str]) -> str:
    """Far cheaper for this process than arrays, whose elements its driver encodes one by one."""
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    return f"SELECT {', '.join(names)} FROM json_to_recordset($1::json) AS sent({columns})"


def _sparse(name: str, columns: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, [(each, Any, None) for each in columns], omit_defaults=True)


def _from_arrays(names: tuple[str, ...], types: list[str]) -> str:
    arrays = ", ".join(f"${i}::{kind}[]" for i, kind in enumerate(types, start=1))
    return f"SELECT {', '.join(names)} FROM unnest({arrays}) AS sent({', '.join(names)})"


def _postgresql_type(column: sa.Column[Any]) -> str:
    return column.type.compile(_POSTGRESQL).lower()


def _picker(names: tuple[str, ...]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda row: (get(row),)
    return attrgetter(*names)
