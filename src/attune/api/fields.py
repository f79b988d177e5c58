"""Fields that the bodies of several areas share, and how a body becomes the values of a step.

In a body that changes something, a field that is absent or null stays as it is; what can be cleared has a
patch, `{"op": "clear"}`, or is listed where its body is read.
"""

from collections.abc import Collection
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic
from fastapi import Path
from pydantic import AfterValidator, Field

T = TypeVar("T")

JsonObject = dict[str, Any]
LONGEST_TEXT = 1_000_000


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


Filled = Annotated[
    str, AfterValidator(_filled), Field(max_length=LONGEST_TEXT, json_schema_extra={"minLength": 1})
]
Ref = Annotated[str, Field(min_length=1, max_length=255, examples=["shop.ship"])]
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Key = Annotated[str, Path(description="The ref, or the id.")]
Schema = Annotated[
    JsonObject, Field(description="JSON Schema, or flat: {name: {type, required, default, …}}.")
]


class SetTo(pydantic.BaseModel, Generic[T]):
    op: Literal["set"]
    value: T


class Clear(pydantic.BaseModel):
    op: Literal["clear"]


TextPatch = Annotated[
    SetTo[str] | Clear | str,
    Field(description="{op: set, value}, {op: clear}, or the text itself."),
]
JsonPatch = Annotated[SetTo[Any] | Clear, Field(description="{op: set, value} or {op: clear}.")]


def given(body: pydantic.BaseModel) -> dict[str, Any]:
    """The values for something new: null is the same as absent."""
    held = body.__dict__
    return {name: _plain(v) for name in body.model_fields_set if (v := held[name]) is not None}


def changed(body: pydantic.BaseModel | None, clearable: Collection[str] = ()) -> dict[str, Any]:
    """The values that a body changes; null counts only for what is `clearable`."""
    if body is None:
        return {}
    return {
        name: _patched(value)
        for name, value in _named(body).items()
        if value is not None or name in clearable
    }


def _named(body: pydantic.BaseModel) -> dict[str, Any]:
    return {name: getattr(body, name) for name in body.model_fields_set}


def _patched(value: Any) -> Any:
    if isinstance(value, SetTo):
        return _plain(value.value)
    return None if isinstance(value, Clear) else _plain(value)


def _plain(value: Any) -> Any:
    """Models inside as they were written, without what was not."""
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value
