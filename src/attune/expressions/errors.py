"""What is refused about an expression, and where."""

from typing import Self

from attune.kernel.errors import InvalidInput


class ExpressionError(InvalidInput):
    """`field` is the place in the document, `column` (from 1) the place in that field's text."""

    code = "invalid_expression"

    def __init__(
        self, problem: str, *, field: str | None = None, column: int | None = None
    ) -> None:
        known = {"field": field, "column": column}
        fields = {name: value for name, value in known.items() if value is not None}
        super().__init__(_sentence(problem, field, column), **fields)
        self.problem = problem
        self.field = field
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.field, self.column)

    def placed(self, column: int) -> Self:
        """The innermost place wins: an error that has a column keeps it."""
        if self.column is not None:
            return self
        return type(self)(self.problem, field=self.field, column=column)

    def within(self, field: str, offset: int = 0) -> Self:
        """The same error as seen from the document, where the expression starts `offset` into the field."""
        column = None if self.column is None else self.column + offset
        return type(self)(self.problem, field=field or None, column=column)


class TooCostly(ExpressionError):
    """Evaluating would take more time or memory than one expression may."""

    code = "expression_too_costly"


class Unfit(Exception):
    """An operation has no result for these values; the expression then has none either (see `Absent`).

    It never leaves this package, and is no AttuneError for that reason.
    """


def _sentence(problem: str, field: str | None, column: int | None) -> str:
    places = [field] if field else []
    if column is not None:
        places.append(f"column {column}")
    return f"{', '.join(places)}: {problem}" if places else problem


def _rebuild(
    kind: type[ExpressionError], problem: str, field: str | None, column: int | None
) -> ExpressionError:
    return kind(problem, field=field, column=column)
