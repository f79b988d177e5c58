"""A schema of parameters as a table, whichever of its two forms it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from attune.cli.rendering import Column


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    required: bool
    default: str | None
    description: str | None


PARAMETER_COLUMNS: list[Column[Parameter]] = [
    Column("NAME", lambda each: each.name),
    Column("TYPE", lambda each: each.kind),
    Column("REQUIRED", lambda each: each.required),
    Column("DEFAULT", lambda each: each.default),
    Column("DESCRIPTION", lambda each: each.description),
]


def parameters_of(schema: Any) -> list[Parameter]:
    if not isinstance(schema, Mapping):
        return []
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    properties = schema.get("properties", {} if schema.get("type") == "object" else schema)
    return [
        _parameter(name, about, required=name in required)
        for name, about in properties.items()
        if isinstance(about, Mapping)
    ]


def _parameter(name: str, about: Mapping[str, Any], *, required: bool) -> Parameter:
    kind = about.get("type", "any")
    words = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    if about.get("enum"):
        words = " | ".join(map(_word, about["enum"]))
    return Parameter(
        name=name,
        kind=words,
        required=required or about.get("required") is True,
        default=_word(about["default"]) if about.get("default") is not None else None,
        description=about.get("description"),
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
