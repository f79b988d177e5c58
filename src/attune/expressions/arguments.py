"""Checks of what a function was given; the call adds the function's name to the sentence."""

from attune.expressions.errors import Unfit
from attune.expressions.values import is_number, named


def a_string(value: object) -> str:
    if not isinstance(value, str):
        raise _wanted("a string", value)
    return value


def an_array(value: object) -> list[object]:
    if not isinstance(value, list):
        raise _wanted("an array", value)
    return value


def an_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _wanted("an object", value)
    return value


def a_number(value: object) -> int | float:
    if not is_number(value):
        raise _wanted("a number", value)
    return value


def a_whole_number(value: object) -> int:
    if type(value) is not int:
        raise _wanted("a whole number", value)
    return value


def a_string_or_array(value: object) -> str | list[object]:
    if not isinstance(value, str | list):
        raise _wanted("a string or an array", value)
    return value


def _wanted(wanted: str, value: object) -> Unfit:
    return Unfit(f"needs {wanted}, not {named(value)}")
