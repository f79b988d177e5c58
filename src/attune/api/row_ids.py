"""Ids in paths and queries. A number that no row can have names nothing: it is unknown, not malformed."""

from typing import Annotated, Final

from fastapi import Path, Query

from attune.kernel.errors import NotFound

_LARGEST: Final = 2**63 - 1

RowId = Annotated[int, Path(description="The id.")]
FilterId = Annotated[int | None, Query(ge=1, le=_LARGEST)]
Before = Annotated[
    int | None,
    Query(ge=1, le=_LARGEST, description="Only those with a smaller id: `next_before` of a page."),
]


def checked(number: int, noun: str) -> int:
    if 0 < number <= _LARGEST:
        return number
    raise unknown(number, noun)


def unknown(number: int, noun: str) -> NotFound:
    return NotFound(f"There is no {noun} {str(number)[:40]}.", id=str(number)[:40])
