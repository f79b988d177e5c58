"""The shapes that all answers share."""

from typing import Generic, TypeVar

import pydantic

T = TypeVar("T")


class Answer(pydantic.BaseModel, Generic[T]):
    """One object, wrapped."""

    data: T


class Success(pydantic.BaseModel):
    """What is answered when there is nothing to show."""

    success: bool = True
    message: str


class ErrorAnswer(pydantic.BaseModel):
    """`code` never changes and is what programs should match on; `details` name what the sentence is about."""

    error: str
    code: str | None = None
    details: dict[str, object] | None = None
