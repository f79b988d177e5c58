"""A batch insert: worked out once for a table and a struct, then one statement for any number of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from attune.kernel.errors import StepMisuse
from attune.store.dialect import sent_as
from attune.store.values import json_text, sqlite_value

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Insert:
    """The statement for each database, and how a struct becomes its parameters."""

    for_postgresql: str
    for_sqlite: str
    pick: Callable[[msgspec.Struct], tuple[Any, ...]]
    json_columns: tuple[int, ...]

    def columns_of(self, rows: Sequence[msgspec.Struct]) -> list[list[Any]]:
        """One list for each column, as PostgreSQL's unnest takes them."""
        columns = [list(column) for column in zip(*map(self.pick, rows), strict=True)]
        for i in self.json_columns:
            columns[i] = [None if value is None else json_text(value) for value in columns[i]]
        return columns

    def rows_of(self, rows: Sequence[msgspec.Struct]) -> list[list[Any]]:
        """One list for each row, as SQLite's executemany takes them."""
        return [self._sqlite_row(self.pick(row)) for row in rows]

    def _sqlite_row(self, values: tuple[Any, ...]) -> list[Any]:
        row = [sqlite_value(value) for value in values]
        for i in self.json_columns:
            row[i] = None if values[i] is None else json_text(values[i])
        return row


@cache
def insert_plan(table: sa.Table, kind: type[msgspec.Struct], skip_existing: bool) -> Insert:
    names = kind.__struct_fields__
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        raise StepMisuse(f"{table.name} has no columns {unknown}, which {kind.__name__} has")
    types = [_postgresql_type(table.columns[name]) for name in names]
    end = " ON CONFLICT DO NOTHING" if skip_existing else ""
    into = f"INSERT INTO {table.name} ({', '.join(names)})"
    return Insert(
        for_postgresql=f"{into} {_from_arrays(names, types)}{end}",
        for_sqlite=f"{into} VALUES ({', '.join('?' for _ in names)}){end}",
        pick=_picker(names),
        json_columns=tuple(i for i, kind in enumerate(types) if kind == "jsonb"),
    )


def _from_arrays(names: tuple[str, ...], types: list[str]) -> str:
    arrays = ", ".join(f"${i}::{sent_as(kind)}[]" for i, kind in enumerate(types, start=1))
    picked = ", ".join(
        f"{name}::jsonb" if kind == "jsonb" else name
        for name, kind in zip(names, types, strict=True)
    )
    return f"SELECT {picked} FROM unnest({arrays}) AS sent({', '.join(names)})"


def _postgresql_type(column: sa.Column[Any]) -> str:
    return column.type.compile(_POSTGRESQL).lower()


def _picker(names: tuple[str, ...]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda row: (get(row),)
    return attrgetter(*names)
