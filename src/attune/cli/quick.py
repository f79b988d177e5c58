"""Commands that start at once: a value that needs no conversion goes around the library's own.

That one loads pydantic for the first value of any type, which is a third of what a short command takes.
Whatever is not plain here goes through it as ever, so nothing but the time differs.
"""

import functools
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from typer.core import TyperCommand, TyperGroup

Convert = Callable[[Any, Any], Any]


class QuickCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _hastened(super().get_params(ctx))


class QuickGroup(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _hastened(super().get_params(ctx))


def _hastened(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if "process_value" not in vars(each):
            each.process_value = functools.partial(_processed, each, each.process_value)
    return parameters


def _processed(parameter: Any, slow: Convert, context: Any, value: Any) -> Any:
    quick = _plain(parameter, value)
    if quick is msgspec.UNSET:
        return slow(context, value)
    return parameter.callback(context, parameter, quick) if parameter.callback else quick


def _plain(parameter: Any, value: Any) -> Any:
    """The value as it is meant; UNSET where that takes more than a look."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    several = parameter.multiple or parameter.nargs != 1
    if value is None and not parameter.required:
        return () if several else None
    if several:
        usable = kind == list[str] and isinstance(value, list | tuple)
        usable = usable and (value or not parameter.required)
        return list(value) if usable else msgspec.UNSET
    if isinstance(kind, type) and isinstance(value, kind):
        return value
    if isinstance(kind, type) and issubclass(kind, StrEnum) and value in {*kind}:
        return kind(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    return msgspec.UNSET
