"""The two written forms of a schema, brought to one: JSON Schema of an object.

Flat is `{name: {type, required, default, enum, minimum, maximum, secret, items, position, description}}`;
further JSON Schema keywords may stand beside these. An object inside may again be written flat.
"""

from collections.abc import Mapping
from typing import Any, Final

from attune.catalog.refs import shown, unknown_word

TYPES: Final = ("string", "number", "integer", "boolean", "object", "array")

_KEYWORDS: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "patternProperties", "enum", "const"}
    | {"allOf", "anyOf", "oneOf", "not", "if", "title", "description", "default", "examples"}
    | {"minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependencies"}
)
_OWN: Final = ("required", "secret", "position")


class BadSchema(ValueError):
    """A rule that a schema breaks, and the dotted place in it."""

    def __init__(self, place: str, rule: str) -> None:
        super().__init__(f"{place}: {rule}" if place else rule)
        self.place = place
        self.rule = rule


def json_schema_of(schema: Any) -> dict[str, Any]:
    """Either form as JSON Schema; `secret` stays where it was written. Raises `BadSchema`."""
    if not isinstance(schema, Mapping):
        raise BadSchema("", "a schema is an object, of parameters or in JSON Schema")
    if is_flat(schema):
        return _object_of(schema, "")
    if not any(key in _KEYWORDS or key.startswith("$") for key in schema):
        first = next(key for key, value in schema.items() if not isinstance(value, Mapping))
        raise BadSchema(first, "a parameter is described by an object, such as {type: string}")
    return dict(schema)


def is_flat(schema: Mapping[str, Any]) -> bool:
    """In the flat form every value describes a parameter; a JSON Schema has some other keyword at its top.

    A parameter may itself be called `properties`: then what it holds are words about it, not schemas.
    """
    if not all(isinstance(value, Mapping) for value in schema.values()):
        return False
    if any(key.startswith("$") for key in schema):
        return False
    properties = schema.get("properties")
    return properties is None or not _holds_schemas(properties)


def _holds_schemas(properties: Mapping[str, Any]) -> bool:
    return all(isinstance(value, Mapping | bool) for value in properties.values())


def _object_of(parameters: Mapping[str, Any], place: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {}}
    required = []
    for name, spec in parameters.items():
        here = f"{place}.{name}" if place else name
        found["properties"][name] = _parameter(spec, here)
        if _flag(spec, "required", here):
            required.append(name)
    if required:
        found["required"] = required
    return found


def _parameter(spec: Any, place: str) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        raise BadSchema(place, "a parameter is described by an object, such as {type: string}")
    _check_type(spec.get("type"), place)
    secret = _flag(spec, "secret", place)
    found = {key: value for key, value in spec.items() if key not in _OWN and value is not None}
    if isinstance(spec.get("required"), list):
        found["required"] = spec["required"]
    if secret:
        found["secret"] = True
    if isinstance(found.get("items"), Mapping):
        found["items"] = _parameter(found["items"], f"{place}.items")
    if isinstance(found.get("properties"), Mapping):
        found |= _inner(found, f"{place}.properties")
    return found


def _inner(spec: dict[str, Any], place: str) -> dict[str, Any]:
    inner = _object_of(spec["properties"], place)
    if "required" in spec:
        inner["required"] = spec["required"]
    return inner


def _flag(spec: Any, name: str, place: str) -> bool:
    """`required` may also be a list: of an object's own fields, as JSON Schema has it."""
    value = spec.get(name) if isinstance(spec, Mapping) else None
    if value is None or (name == "required" and isinstance(value, list)):
        return False
    if not isinstance(value, bool):
        raise BadSchema(f"{place}.{name}", "must be true or false")
    return value


def _check_type(kind: Any, place: str) -> None:
    for word in kind if isinstance(kind, list) else [kind]:
        if word is None or word in TYPES or (word == "null" and isinstance(kind, list)):
            continue
        said = unknown_word(word, TYPES, "type") if isinstance(word, str) else "must be a word"
        raise BadSchema(f"{place}.type", said)


def place_of(path: list[str | int]) -> str:
    """A path into a document as people write it: `targets[2].host`."""
    found = ""
    for step in path:
        if isinstance(step, int):
            found += f"[{step}]"
        else:
            found += f".{step}" if found else step
    return found if len(found) <= 200 else shown(found)
