"""Parameters as they are typed on a command line, turned into the types that the action's schema asks for."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from attune.kernel.errors import InvalidInput

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
_JSON_KINDS: Final = {"array": list, "object": dict}


def needs_schema(pairs: Sequence[str]) -> bool:
    """Whether any value has to be read by the schema: one after `:=` is JSON, whatever the schema says."""
    return any(not _split(pair)[2] for pair in pairs)


def parameters_from(pairs: Sequence[str], document: str | None, schema: Any) -> dict[str, Any]:
    """Those of the document, overridden by the single ones."""
    found = json_object(document, "--params") if document is not None else {}
    for pair in pairs:
        name, text, is_json = _split(pair)
        found[name] = _json(text, name) if is_json else typed(name, text, _types(schema, name))
    return found


def json_object(text: str, option: str) -> dict[str, Any]:
    """A JSON object, given as it is or as @file; `@-` is standard input."""
    value = _json(_content(text, option), option)
    if not isinstance(value, dict):
        sentence = f"{option} must be a JSON object, such as '{{\"name\": 1}}'."
        raise InvalidInput(sentence, field=option)
    return value


def variables_from(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise InvalidInput(f"--env must be NAME=VALUE, not {pair!r}.", field="--env")
        found[name] = value
    return found


def typed(name: str, text: str, kinds: Sequence[str]) -> Any:
    """The first of these types that the text can be; without any it is a text."""
    if not kinds or "string" in kinds:
        return text
    for kind in kinds:
        value = _as(kind, text)
        if value is not msgspec.UNSET:
            return value
    raise InvalidInput(f"{name} must be {_words(kinds)}, not {text!r}.", field=name)


def _split(pair: str) -> tuple[str, str, bool]:
    """Name, text, and whether the text is JSON."""
    name, separator, text = pair.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":")
    if not separator or not name:
        sentence = f"--param must be NAME=VALUE or NAME:=JSON, not {pair!r}."
        raise InvalidInput(sentence, field="--param")
    return name, text, is_json


def _types(schema: Any, name: str) -> Sequence[str]:
    """What either form of schema says of one parameter."""
    properties = schema.get("properties", schema) if isinstance(schema, Mapping) else {}
    described = properties.get(name) if isinstance(properties, Mapping) else None
    kind = described.get("type") if isinstance(described, Mapping) else None
    if isinstance(kind, str):
        return [kind]
    return [each for each in kind if isinstance(each, str)] if isinstance(kind, list) else []


def _as(kind: str, text: str) -> Any:
    """UNSET where the text is no such value."""
    if kind == "boolean":
        word = text.lower()
        return word in _TRUE if word in _TRUE | _FALSE else msgspec.UNSET
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.UNSET
    match kind:
        case "integer":
            fits = isinstance(value, int) and not isinstance(value, bool)
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "null":
            fits = value is None
        case _:
            fits = isinstance(value, _JSON_KINDS.get(kind, object))
    return value if fits else msgspec.UNSET


def _words(kinds: Sequence[str]) -> str:
    named = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": "a JSON array",
        "object": "a JSON object",
    }
    return " or ".join(named.get(kind, kind) for kind in kinds)


def _json(text: str, name: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{name} is not JSON: {error}.", field=name) from None


def _content(text: str, option: str) -> str:
    if not text.startswith("@"):
        return text
    name = text.removeprefix("@")
    try:
        if name == "-":
            return sys.stdin.read()
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        sentence = f"{option}: {name} cannot be read: {error.strerror}."
        raise InvalidInput(sentence, field=option) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{option}: {name} is not UTF-8.", field=option) from None
