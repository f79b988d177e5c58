"""The constraints of a grant as conditions of SQL, so that a list holds exactly what a look at one thing allows."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from attune.identities.constraints import SCOPES, Constraints, execution_of, has_attributes
from attune.identities.model import Caller


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Where a table has the fields of `Target`, as SQL of our own; what is not named, it does not have.

    `line` is a condition over `:scope`, which holds for that execution and those below it.
    """

    id: str | None = "id"
    ref: str | None = None
    pack_ref: str | None = None
    owner: str | None = None
    owner_type: str | None = None
    owner_ref: str | None = None
    visibility: str | None = None
    encrypted: str | None = None
    executor: str | None = None
    line: str | None = None


class Condition(NamedTuple):
    """A condition of SQL and its parameters. It is whole: it can stand beside AND and OR."""

    sql: str
    values: dict[str, Any]


ALWAYS: Final = Condition("true", {})
NEVER: Final = Condition("false", {})


def condition_of(
    constraints: Constraints, columns: Columns, caller: Caller, prefix: str
) -> Condition:
    """The same for every row of a table; parameters are named after `prefix`."""
    parts: list[str] = []
    values: dict[str, Any] = {}
    for name, wanted in constraints.items():
        found = _SQL[name](wanted, columns, caller, f"{prefix}_{name}") if name in _SQL else NEVER
        parts.append(found.sql)
        values |= found.values
    if "false" in parts:
        return NEVER
    return Condition(f"({' AND '.join(parts)})", values) if parts else ALWAYS


def either(conditions: Iterable[Condition]) -> Condition:
    """Any of these; one that always holds makes the others needless."""
    parts = [each for each in conditions if each.sql != NEVER.sql]
    if any(each.sql == ALWAYS.sql for each in parts):
        return ALWAYS
    values = {name: value for each in parts for name, value in each.values.items()}
    return Condition(f"({' OR '.join(each.sql for each in parts)})", values) if parts else NEVER


def _among(field: str, kind: str = "text") -> Callable[[Any, Columns, Caller, str], Condition]:
    def condition(wanted: Any, columns: Columns, _caller: Caller, name: str) -> Condition:
        column = getattr(columns, field)
        if column is None or not wanted:
            return NEVER
        return Condition(f"{column} = ANY(:{name}::{kind}[])", {name: sorted(wanted)})

    return condition


def _owner_sql(wanted: Any, columns: Columns, caller: Caller, name: str) -> Condition:
    if wanted == "any":
        return ALWAYS
    if columns.owner is None or wanted not in ("self", "none"):
        return NEVER
    if wanted == "none":
        return Condition(f"{columns.owner} IS NULL", {})
    return Condition(f"{columns.owner} = :{name}", {name: caller.identity})


def _encrypted_sql(wanted: Any, columns: Columns, _caller: Caller, name: str) -> Condition:
    if columns.encrypted is None or not isinstance(wanted, bool):
        return NEVER
    return Condition(f"{columns.encrypted} = :{name}", {name: wanted})


def _scope_sql(wanted: Any, columns: Columns, caller: Caller, name: str) -> Condition:
    own = execution_of(caller)
    if wanted == "any":
        return ALWAYS
    if wanted not in SCOPES:
        return NEVER
    if own is None:
        by = columns.executor
        return Condition(f"{by} = :{name}", {name: caller.identity}) if by else NEVER
    if wanted == "self":
        return Condition(f"{columns.id} = :{name}", {name: own}) if columns.line else NEVER
    return Condition(columns.line, {"scope": own}) if columns.line else NEVER


_SQL: Final[dict[str, Callable[[Any, Columns, Caller, str], Condition]]] = {
    "pack_refs": _among("pack_ref"),
    "refs": _among("ref"),
    "ids": _among("id", "bigint"),
    "owner": _owner_sql,
    "owner_types": _among("owner_type"),
    "owner_refs": _among("owner_ref"),
    "visibility": _among("visibility"),
    "encrypted": _encrypted_sql,
    "execution_scope": _scope_sql,
    "attributes": lambda wanted, _columns, caller, _name: (
        ALWAYS if has_attributes(wanted, None, caller) else NEVER
    ),
}
