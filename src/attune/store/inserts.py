"""A batch insert: worked out once for a table and a struct, then one statement for any number of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import starmap
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from attune.kernel.errors import StepMisuse
from attune.store.values import json_text, to_micros

Encoder = Callable[[Any], Any]

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Insert:
    """The statement for each database, how a struct becomes its values, and which of them need encoding.

    `sparse` is the row as JSON, without what is null: to read that would take the server a third of its time.
    """

    table: str
    for_postgresql: str
    for_sqlite: str
    pick: Callable[[msgspec.Struct], tuple[Any, ...]]
    sparse: type[msgspec.Struct] | None
    sqlite_encoders: tuple[tuple[int, Encoder], ...]

    def values_of(self, rows: Sequence[msgspec.Struct]) -> list[Any]:
        """As PostgreSQL's statement takes them: one JSON text, or where there are bytes one array for each column."""
        values = map(self.pick, rows)
        if self.sparse is not None:
            return [json_text([*starmap(self.sparse, values)])]
        return list(zip(*values, strict=True))

    def rows_of(self, rows: Sequence[msgspec.Struct]) -> list[list[Any]]:
        """One list for each row, as SQLite's executemany takes them."""
        found = [list(self.pick(row)) for row in rows]
        for i, encode in self.sqlite_encoders:
            for values in found:
                if values[i] is not None:
                    values[i] = encode(values[i])
        return found


@cache
def insert_plan(table: sa.Table, kind: type[msgspec.Struct], skip_existing: bool) -> Insert:
    names = kind.__struct_fields__
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        raise StepMisuse(f"{table.name} has no columns {unknown}, which {kind.__name__} has")
    types = [_postgresql_type(table.columns[name]) for name in names]
    end = " ON CONFLICT DO NOTHING" if skip_existing else ""
    into = f"INSERT INTO {table.name} ({', '.join(names)})"
    as_json = "bytea" not in types
    source = _from_json(names, types) if as_json else _from_arrays(names, types)
    return Insert(
        table=table.name,
        for_postgresql=f"{into} {source}{end}",
        for_sqlite=f"{into} VALUES ({', '.join('?' for _ in names)}){end}",
        pick=_picker(names),
        sparse=_sparse(kind.__name__, names) if as_json else None,
        sqlite_encoders=_encoders(types, _SQLITE_ENCODERS),
    )


_SQLITE_ENCODERS: dict[str, Encoder] = {
    "jsonb": json_text,
    "timestamp with time zone": to_micros,
    "uuid": str,
}


def _encoders(types: list[str], known: dict[str, Encoder]) -> tuple[tuple[int, Encoder], ...]:
    return tuple((i, known[kind]) for i, kind in enumerate(types) if kind in known)


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
