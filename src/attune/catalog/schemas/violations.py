"""What a validator found, in words that name the field and the rule but never the value, which may be secret."""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from attune.catalog.schemas.forms import place_of
from attune.expressions.templates import holds_template

MASK: Final = "the value"

# A template inside such a value may make the rule hold once it is rendered.
_CERTAIN: Final = (
    Kind.Required,
    Kind.Type,
    Kind.AdditionalProperties,
    Kind.MinProperties,
    Kind.MaxProperties,
    Kind.MinItems,
    Kind.MaxItems,
)


def told(error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    """The field and its rule."""
    path = list(error.instance_path)
    match error.kind:
        case Kind.Required(name):
            return place_of([*path, name]), "is required"
        case Kind.Type(types):
            return place_of(path), f"must be {_either([_with_article(kind) for kind in types])}"
        case Kind.Enum(options):
            return place_of(path), f"must be one of {', '.join(map(str, options))}"
        case Kind.Minimum(limit):
            return place_of(path), f"must be at least {limit}"
        case Kind.Maximum(limit):
            return place_of(path), f"must be at most {limit}"
        case _:
            return place_of(path), error.message


def open_until_rendered(error: jsonschema_rs.ValidationError, document: Any) -> bool:
    """Whether a template could still make the value right: it may become a value of any type."""
    value = document
    for step in error.instance_path:
        value = value[step]
    if holds_template(value):
        return True
    return not isinstance(error.kind, _CERTAIN) and _has_template_inside(value)


def _has_template_inside(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_template_inside, value.values()))
    if isinstance(value, list):
        return any(map(_has_template_inside, value))
    return holds_template(value)


def _with_article(kind: str) -> str:
    if kind == "null":
        return kind
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _either(words: list[str]) -> str:
    return " or ".join(words)
