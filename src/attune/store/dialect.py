"""One SQL text, two databases: everything that differs between them is written here.

Statements are PostgreSQL's SQL with named parameters (`:name`) and one addition: a list of rows as a
table, `ROWS(:changes AS v(id bigint, status text))`, given as a list of tuples. SQLite gets:

    ROWS(:r AS v(id bigint, …))      a SELECT over json_each(:r)
    x = ANY(:ids), x <> ALL(:ids)    x IN / NOT IN (SELECT value FROM json_each(:ids))
    x = ANY(ARRAY(SELECT …))         x IN (SELECT …)
    FOR UPDATE … SKIP LOCKED         nothing: there is one writer
    x::type                          x
    ELEMENTS(x.list) AS e            json_each(x.list) AS e; each has a `value`

A short list or table has its values as parameters of their own, because SQLite reads JSON again for every column. A list of
one element is that element: SQLite would make a table of it before it looks at any other. In both databases an UPDATE from a
table of one row has the row's values in it. Its condition begins with the key, `WHERE t.id = v.id`: on PostgreSQL it is no join
unless there are many rows.

An `INSERT … SELECT … FROM ROWS(…) ON CONFLICT` needs `WHERE true` before ON CONFLICT, or SQLite takes ON
for a join's.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import ClassVar, Final

from attune.kernel.errors import StepMisuse


@dataclass(frozen=True, slots=True)
class RowsParameter:
    """A parameter that is a table: its name and the SQL types of its columns. `count`: it has so many rows, whose values
    are parameters themselves."""

    name: str
    types: tuple[str, ...]
    count: int = 0


@dataclass(frozen=True, slots=True)
class ListParameter:
    """A parameter that is a list. `count`: it has so many elements, which are parameters themselves."""

    name: str
    count: int = 0


Parameter = str | ListParameter | RowsParameter


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in one database's words, and its parameters by their numbers. `plural` are lists and tables for which
    it is written otherwise if they are short."""

    sql: str
    parameters: tuple[Parameter, ...]
    names: frozenset[str]
    plural: tuple[str, ...] = ()


_FEW: Final = 100  # rows whose places in a list are found more quickly than by a join

_VERBATIM = r"(?P<verbatim> '(?:[^']|'')*' | \"(?:[^\"]|\"\")*\" | --[^\n]* )"
_ROWS = (
    r"(?P<rows> \bROWS\(\s*:(?P<table>\w+)\s+AS\s+(?P<alias>\w+)\s*\((?P<columns>[^)]*)\)\s*\) )"
)
_SUBSELECT = r"(?P<subselect> =\s*ANY\s*\(\s*ARRAY\s*\( )"
_MEMBER = r"(?P<member> (?P<verb>=\s*ANY|<>\s*ALL)\s*\(\s*:(?P<list>\w+)\s*(?:::\s*\w+\[\])?\s*\) )"
_LOCK = r"(?P<lock> \bFOR\s+(?:SHARE|(?:NO\s+KEY\s+)?UPDATE)(?:\s+OF\s+\w+)?(?:\s+SKIP\s+LOCKED|\s+NOWAIT)?\b )"
_CAST = r"(?P<cast> ::\s*\w+(?:\[\])? )"
_ELEMENTS = r"(?P<elements> \bELEMENTS\((?P<array>[\w.]+)\)\s+AS\s+(?P<each>\w+) )"
_NAME = r"(?P<name> :(?P<parameter>[a-z_]\w*) )"
# Also one that is to be explained: what is explained must be what is run.
_UPDATE_FROM = re.compile(
    rf"\s*(?:EXPLAIN\s*(?:\([^)]*\)\s*)?)?UPDATE\b.*?(?P<source>\bFROM\s+{_ROWS}) \s+WHERE",
    re.VERBOSE | re.DOTALL,
)


class Size(StrEnum):
    """How many rows the tables of a statement have."""

    ONE = "one"
    FEW = "few"
    MANY = "many"

    @classmethod
    def of(cls, rows: Collection[int]) -> "Size":
        """By the rows of each table."""
        if set(rows) == {1}:
            return cls.ONE
        return cls.FEW if max(rows) <= _FEW else cls.MANY


@cache
def for_postgresql(sql: str, size: Size = Size.FEW) -> Statement:
    return _PostgreSQLWriter(size).write(sql)


@cache
def for_sqlite(sql: str, counts: tuple[tuple[str, int], ...] = ()) -> Statement:
    """`counts` has the lengths of lists and tables that are short."""
    return _SQLiteWriter(dict(counts)).write(sql)


class _Writer:
    """Copies the text; each token that its pattern finds is replaced by the method of the token's name."""

    tokens: ClassVar[re.Pattern[str]]

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self._count = 0

    def write(self, sql: str) -> Statement:
        text = self.translate(sql)
        names = (p if isinstance(p, str) else p.name for p in self.parameters)
        return Statement(text, tuple(self.parameters), frozenset(names))

    def translate(self, sql: str) -> str:
        parts: list[str] = []
        position = 0
        while match := self.tokens.search(sql, position):
            parts.append(sql[position : match.start()])
            replace = getattr(self, str(match.lastgroup))
            text, position = replace(match)
            parts.append(text)
        parts.append(sql[position:])
        return "".join(parts)

    def verbatim(self, match: re.Match[str]) -> tuple[str, int]:
        return match[0], match.end()

    def _with_row(self, sql: str, source: re.Match[str], parameters: Sequence[str]) -> str:
        """An UPDATE with these parameters in the place of the columns of its one row."""
        parameter_of = dict(zip((name for name, _ in _columns(source)), parameters, strict=True))
        alone = sql[: source.start("source")] + sql[source.end("source") :]
        column = re.compile(rf"\b{source['alias']}\.(\w+)")
        return column.sub(lambda match: parameter_of[match[1]], alone)

    def _take(self, count: int) -> int:
        """The first of so many numbers for parameters."""
        first = self._count + 1
        self._count += count
        return first


class _PostgreSQLWriter(_Writer):
    """Names become numbers, because that is what the server's protocol has; rows become one array a column.

    An UPDATE from few rows finds them by their keys and joins nothing. A plan stays while its table grows: a join that was
    planned when the table was small would read all of it for every few rows from then on. For many it is a join: to find
    the place of each in a long list takes longer.
    """

    tokens = re.compile("|".join([_VERBATIM, _ROWS, _ELEMENTS, _CAST, _NAME]), re.VERBOSE)

    def __init__(self, size: Size) -> None:
        super().__init__()
        self._size = size
        self._number_of: dict[str, int] = {}

    def write(self, sql: str) -> Statement:
        source = _UPDATE_FROM.match(sql)
        if source and self._size is Size.ONE:
            sql = self._with_row(sql, source, self._values(source))
        elif source and self._size is Size.FEW:
            sql = self._by_keys(sql, source)
        statement = super().write(sql)
        tables = (p.name for p in self.parameters if isinstance(p, RowsParameter))
        return replace(statement, plural=tuple(tables))

    def _by_keys(self, sql: str, source: re.Match[str]) -> str:
        """Each value is the one at the place of the row's key. The first column that the rows' are compared with is the key."""
        columns = _columns(source)
        arrays = dict(zip((name for name, _ in columns), self._arrays(source), strict=True))
        key = re.compile(rf"\bWHERE\s+(?P<row>\w+\.\w+) = {source['alias']}\.(?P<key>\w+)")
        if (found := key.search(sql, source.end("source"))) is None:
            raise StepMisuse(f"An UPDATE from rows needs `WHERE table.key = rows.key` first: {sql}")
        place = f"array_position({arrays[found['key']]}, {found['row']})"
        keyed = f"WHERE {found['row']} = ANY({arrays[found['key']]})"
        picked = [_as_sent(f"({arrays[name]})[{place}]", kind) for name, kind in columns]
        return self._with_row(sql[: found.start()] + keyed + sql[found.end() :], source, picked)

    def _values(self, source: re.Match[str]) -> list[str]:
        """Of one row, as parameters of their own."""
        sent = self._sent(source, 1)
        return [
            _as_sent(value, kind) for value, (_, kind) in zip(sent, _columns(source), strict=True)
        ]

    def _arrays(self, source: re.Match[str]) -> list[str]:
        return [f"{value}[]" for value in self._sent(source, 0)]

    def _sent(self, source: re.Match[str], count: int) -> list[str]:
        """A parameter for each column, with the type that it travels as."""
        kinds = _types(_columns(source))
        self.parameters.append(RowsParameter(source["table"], kinds, count))
        numbered = enumerate(kinds, self._take(len(kinds)))
        return [f"${number}::{sent_as(kind)}" for number, kind in numbered]

    cast = _Writer.verbatim

    def elements(self, match: re.Match[str]) -> tuple[str, int]:
        each = f"jsonb_array_elements_text({match['array']}) AS {match['each']}(value)"
        return each, match.end()

    def name(self, match: re.Match[str]) -> tuple[str, int]:
        name = match["parameter"]
        if name not in self._number_of:
            self.parameters.append(name)
            self._number_of[name] = self._take(1)
        return f"${self._number_of[name]}", match.end()

    def rows(self, match: re.Match[str]) -> tuple[str, int]:
        columns, alias = _columns(match), match["alias"]
        names = [name for name, _ in columns]
        if self._size is Size.ONE:
            values = zip(self._values(match), names, strict=True)
            row = ", ".join(f"{value} AS {name}" for value, name in values)
            return f"(SELECT {row}) AS {alias}", match.end()
        sent = f"unnest({', '.join(self._arrays(match))}) AS sent({', '.join(names)})"
        picked = ", ".join(_as_sent(name, kind) for name, kind in columns)
        return f"(SELECT {picked} FROM {sent}) AS {alias}({', '.join(names)})", match.end()


class _SQLiteWriter(_Writer):
    tokens = re.compile(
        "|".join([_VERBATIM, _ROWS, _ELEMENTS, _SUBSELECT, _MEMBER, _LOCK, _CAST, _NAME]),
        re.VERBOSE,
    )

    def __init__(self, counts: Mapping[str, int]) -> None:
        super().__init__()
        self._counts = counts
        self._number_of: dict[Parameter, int] = {}

    def write(self, sql: str) -> Statement:
        source = _UPDATE_FROM.match(sql)
        if source and self._counts.get(source["table"]) == 1:
            columns = _columns(source)
            row = RowsParameter(source["table"], _types(columns), 1)
            first = self._numbered(row, len(columns))
            numbers = range(first, first + len(columns))
            sql = self._with_row(sql, source, [f"?{number}" for number in numbers])
        statement = super().write(sql)
        plural = tuple(p.name for p in self.parameters if not isinstance(p, str))
        return replace(statement, plural=plural)

    def name(self, match: re.Match[str]) -> tuple[str, int]:
        return f"?{self._numbered(match['parameter'])}", match.end()

    def rows(self, match: re.Match[str]) -> tuple[str, int]:
        columns = _columns(match)
        count, width = self._counts.get(match["table"], 0), len(columns)
        table = RowsParameter(match["table"], _types(columns), count)
        first = self._numbered(table, count * width or 1)
        if count:
            rows = (f"({_numbers(first + row * width, width)})" for row in range(count))
            source, column = f"(VALUES {', '.join(rows)})", "column{}"
        else:
            source, column = f"json_each(?{first})", "value ->> {}"
        picked = (
            f"{column.format(i + bool(count))} AS {name}" for i, (name, _) in enumerate(columns)
        )
        return f"(SELECT {', '.join(picked)} FROM {source}) AS {match['alias']}", match.end()

    def elements(self, match: re.Match[str]) -> tuple[str, int]:
        return f"json_each({match['array']}) AS {match['each']}", match.end()

    def member(self, match: re.Match[str]) -> tuple[str, int]:
        verb = "IN" if match["verb"].startswith("=") else "NOT IN"
        count = self._counts.get(match["list"], 0)
        first = self._numbered(ListParameter(match["list"], count), count or 1)
        within = _numbers(first, count) if count else f"SELECT value FROM json_each(?{first})"
        return f"{verb} ({within})", match.end()

    def subselect(self, match: re.Match[str]) -> tuple[str, int]:
        inner_end = _closing(match.string, match.end())
        outer_end = _closing(match.string, inner_end + 1)
        return f"IN ({self.translate(match.string[match.end() : inner_end])})", outer_end + 1

    def lock(self, match: re.Match[str]) -> tuple[str, int]:
        return "", match.end()

    cast = lock

    def _numbered(self, parameter: Parameter, count: int = 1) -> int:
        """The first of the numbers of its values."""
        if parameter not in self._number_of:
            self.parameters.append(parameter)
            self._number_of[parameter] = self._take(count)
        return self._number_of[parameter]


def _numbers(first: int, count: int) -> str:
    return ", ".join(f"?{number}" for number in range(first, first + count))


def sent_as(kind: str) -> str:
    """JSON travels as text, which the server reads once it is there."""
    return "text" if kind == "jsonb" else kind


def _as_sent(value: str, kind: str) -> str:
    return f"{value}::jsonb" if kind == "jsonb" else value


def _columns(match: re.Match[str]) -> list[tuple[str, str]]:
    columns = [column.split() for column in match["columns"].split(",")]
    if not all(len(column) == 2 for column in columns):
        raise StepMisuse(f"Each column of ROWS needs a name and a one-word type: {match[0]}")
    return [(name, kind) for name, kind in columns]


def _types(columns: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(kind for _, kind in columns)


def _closing(sql: str, start: int) -> int:
    """Where the parenthesis that is open at `start` closes."""
    depth = 1
    for position in range(start, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[position], 0)
        if depth == 0:
            return position
    raise StepMisuse(f"A parenthesis is not closed: {sql}")
