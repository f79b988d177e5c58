"""The conditions and templates of a rule are parsed when it is saved, so that a slip is told to its author."""

from typing import Any

from attune.expressions.conditions import compile_condition
from attune.expressions.errors import ExpressionError
from attune.expressions.templates import compile_template


def conditions_as_object(written: Any) -> dict[str, Any] | None:
    """A list of conditions as the object that clients expect; None for what is neither."""
    if isinstance(written, list):
        return {"all": written} if written else {}
    return written if isinstance(written, dict) else None


def condition_fault(conditions: dict[str, Any]) -> ExpressionError | None:
    try:
        compile_condition(conditions, "conditions")
    except ExpressionError as error:
        return error
    return None


def template_fault(parameters: dict[str, Any], field: str) -> ExpressionError | None:
    try:
        compile_template(parameters, field)
    except ExpressionError as error:
        return error
    return None
