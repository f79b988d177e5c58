"""A compiled schema: checks parameters, fills in defaults, and knows what is secret.

Compiling is done once for each content. No schema makes this process fetch anything, and a pattern has a
bounded number of steps. Parameters outside the schema are the action's own affair and pass.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs
import msgspec

from attune.catalog.schemas.forms import TYPES, BadSchema, is_flat, json_schema_of, place_of
from attune.catalog.schemas.violations import MASK, open_until_rendered, told
from attune.kernel.errors import InvalidInput

REDACTED: Final = "[redacted]"

_CACHED: Final = 2048
_BACKTRACKING_STEPS: Final = 100_000
_PATTERN_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    json_schema: dict[str, Any]
    secret_names: frozenset[str]
    _has_secrets: bool
    _validator: jsonschema_rs.Validator

    def check(
        self, parameters: Mapping[str, Any], *, templates: bool = False, field: str = ""
    ) -> dict[str, Any]:
        """The parameters with defaults filled in; `InvalidInput` that names every bad one.

        A null where no null may stand counts as not given. With `templates`, a string with `{{` passes for
        any type, because only rendering will tell. `field` is where the parameters stand in a larger body.
        """
        filled = _filled(self.json_schema, parameters)
        problems: dict[str, str] = {}
        for error in self._validator.iter_errors(filled):
            if not (templates and open_until_rendered(error, filled)):
                name, rule = told(error)
                problems.setdefault(".".join(part for part in (field, name) if part), rule)
        if problems:
            raise _refused(problems)
        return filled

    def redact(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as they may be shown."""
        if not self._has_secrets:
            return dict(parameters)
        return {
            name: _redacted(self.json_schema.get("properties", {}).get(name), value)
            for name, value in parameters.items()
        }


def compile_schema(schema: Mapping[str, Any] | None, field: str = "schema") -> ParameterSchema:
    """Either form; None takes anything. A bad schema is `InvalidInput` that names the place in it."""
    try:
        return _compiled(msgspec.json.encode(schema or {}, order="sorted"))
    except BadSchema as error:
        place = f"{field}.{error.place}" if error.place else field
        raise InvalidInput(f"{place}: {error.rule}", field=place) from error


def schema_fault(schema: Any) -> BadSchema | None:
    """What is wrong with a schema that is about to be saved, or None."""
    try:
        _compiled(msgspec.json.encode(schema, order="sorted"))
    except BadSchema as error:
        return error
    return None


@lru_cache(maxsize=_CACHED)
def _compiled(content: bytes) -> ParameterSchema:
    written = msgspec.json.decode(content)
    json_schema = json_schema_of(written)
    try:
        validator = jsonschema_rs.validator_for(
            json_schema,
            offline=True,
            mask=MASK,
            pattern_options=jsonschema_rs.FancyRegexOptions(
                backtrack_limit=_BACKTRACKING_STEPS, size_limit=_PATTERN_BYTES
            ),
        )
    except jsonschema_rs.ValidationError as error:
        path = list(error.instance_path)
        raise BadSchema(place_of(path[1:] if is_flat(written) else path), _why(error)) from error
    except ValueError as error:
        raise BadSchema("", str(error)) from error
    _check_defaults(json_schema, validator)
    names = frozenset(_secret_names(json_schema))
    return ParameterSchema(json_schema, names, _has_secret(json_schema), validator)


def _why(error: jsonschema_rs.ValidationError) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
        return "a $ref must stay inside the schema"
    if error.instance_path[-1:] == ["type"]:
        return f"unknown type; known are {', '.join(TYPES)} and null"
    return told(error)[1]


def _check_defaults(json_schema: dict[str, Any], validator: jsonschema_rs.Validator) -> None:
    """A default that breaks its own rule would fail every execution that relies on it."""
    defaults = _filled(json_schema, {})
    for error in validator.iter_errors(defaults):
        if error.instance_path and not open_until_rendered(error, defaults):
            name, rule = told(error)
            raise BadSchema(f"{name}.default", rule)


def _filled(json_schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    properties = json_schema.get("properties", {})
    found = {
        name: _filled_inside(properties.get(name), value)
        for name, value in given.items()
        if value is not None or _takes_null(properties.get(name))
    }
    for name, spec in properties.items():
        if name not in found and isinstance(spec, dict):
            usual = spec.get("default")
            if usual is not None:
                found[name] = copy.deepcopy(usual) if isinstance(usual, dict | list) else usual
    return found


def _filled_inside(spec: Any, value: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(spec, dict) and "properties" in spec:
        return _filled(spec, value)
    return value


def _takes_null(spec: Any) -> bool:
    """Where nothing is said about a type, a null is a value like any other."""
    if not isinstance(spec, dict):
        return True
    kinds, options = spec.get("type"), spec.get("enum")
    if options is not None:
        return None in options
    return kinds is None or "null" in (kinds if isinstance(kinds, list) else [kinds])


def _is_secret(spec: Any) -> bool:
    return isinstance(spec, Mapping) and spec.get("secret") is True


def _secret_names(json_schema: Mapping[str, Any]) -> Iterator[str]:
    for name, spec in json_schema.get("properties", {}).items():
        if _is_secret(spec):
            yield name


def _has_secret(spec: Any) -> bool:
    """Anywhere that `_redacted` comes to."""
    if not isinstance(spec, Mapping):
        return False
    inside = [*spec.get("properties", {}).values(), spec.get("items")]
    return _is_secret(spec) or any(map(_has_secret, inside))


def _redacted(spec: Any, value: Any) -> Any:
    if not isinstance(spec, Mapping) or value is None:
        return value
    if _is_secret(spec):
        return REDACTED
    if isinstance(value, Mapping):
        inner = spec.get("properties", {})
        return {name: _redacted(inner.get(name), held) for name, held in value.items()}
    if isinstance(value, list):
        return [_redacted(spec.get("items"), held) for held in value]
    return value


def _refused(problems: dict[str, str]) -> InvalidInput:
    text = "; ".join(f"{name}: {rule}" if name else rule for name, rule in problems.items())
    return InvalidInput(text, field=next(iter(problems)), problems=problems)
