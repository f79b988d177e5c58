"""Reads the settings: one YAML file, overridden by variables named ATTUNE__SECTION__KEY.

An unknown key or variable is an error that names its nearest relative, because a setting that is
silently ignored is found out in production. No error repeats a value: it may be a secret.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pydantic
import yaml

from attune.kernel.errors import InvalidSettings
from attune.kernel.settings import Section, Settings

PREFIX = "ATTUNE__"
_SEPARATOR = "__"


def load_settings(
    environ: Mapping[str, str],
    file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Defaults, then the file, then the environment, then `overrides` (dotted key: value, from the command line)."""
    tree = _read_file(file) if file else {}
    _check_keys(tree, file)
    for key, value in _read_environment(environ):
        _put(tree, key, value)
    for key, value in (overrides or {}).items():
        if value is not None:
            _put(tree, key, value)
    try:
        return Settings.model_validate(tree)
    except pydantic.ValidationError as error:
        raise _refusal(error) from None


def known_variables() -> frozenset[str]:
    """The names of all variables that configure Attune."""
    return frozenset(_variable(key) for key in _known_keys())


def _variable(key: str) -> str:
    return PREFIX + key.upper().replace(".", _SEPARATOR)


@cache
def _known_keys() -> dict[str, bool]:
    """Every dotted key, and whether its value is a map or a list (JSON in the environment)."""
    return dict(_keys_of(Settings, ""))


def _keys_of(model: type[Section], prefix: str) -> Iterator[tuple[str, bool]]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from _keys_of(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _is_collection(annotation)


def _is_collection(annotation: Any) -> bool:
    kinds = {get_origin(annotation), *(get_origin(part) for part in get_args(annotation))}
    return bool(kinds & {dict, list})


def _read_file(file: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSettings(
            f"The configuration file {file} cannot be read: {error.strerror}.", file=str(file)
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidSettings(
            f"The configuration file {file} is not valid YAML{place}.", file=str(file)
        ) from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InvalidSettings(
            f"The configuration file {file} must hold a map of sections.", file=str(file)
        )
    return tree


def _check_keys(tree: Mapping[Any, Any], file: Path | None) -> None:
    for key in _leaves(tree, ""):
        if not _is_known(key):
            hint = _nearest(key, _known_keys())
            raise InvalidSettings(f"{file}: unknown key {key}{hint}", field=key, file=str(file))


def _is_known(key: str) -> bool:
    """A section given as `executor:` with nothing below it is known too."""
    known = _known_keys()
    return key in known or any(name.startswith(f"{key}.") for name in known)


def _leaves(tree: Mapping[Any, Any], prefix: str) -> Iterator[str]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in _known_keys():
            yield from _leaves(value, f"{key}.")
        else:
            yield key


def _read_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    keys = {_variable(key): key for key in _known_keys()}
    for variable, text in environ.items():
        if not variable.upper().startswith(PREFIX):
            continue
        key = keys.get(variable.upper())
        if key is None:
            hint = _nearest(variable.upper(), keys)
            raise InvalidSettings(f"unknown variable {variable}{hint}", field=variable)
        yield key, _parse(variable, text) if _known_keys()[key] else text


def _parse(variable: str, text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise InvalidSettings(f"{variable} must be JSON: a map or a list", field=variable) from None


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _put(tree: dict[str, Any], key: str, value: object) -> None:
    *sections, last = key.split(".")
    for section in sections:
        below = tree.get(section)
        if below is None:
            below = tree[section] = {}
        if not isinstance(below, dict):
            raise InvalidSettings(f"{section} must be a map of keys", field=section)
        tree = below
    tree[last] = value


def _refusal(error: pydantic.ValidationError) -> InvalidSettings:
    problems = []
    for problem in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in problem["loc"] if "-" not in str(part))
        text = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{key}: {text}" if key else text)
    first = error.errors(include_input=False)[0]["loc"]
    return InvalidSettings(
        "The configuration cannot be used. " + "; ".join(problems),
        field=".".join(str(part) for part in first),
    )
