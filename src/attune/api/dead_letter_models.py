"""Bodies and answers of /dead-letters."""

import base64
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

import pydantic
from pydantic import Field

from attune.bus.outcome import Reason
from attune.dead_letters.model import Letter, LetterFilters
from attune.dead_letters.replay import MOST_AT_ONCE


class DeadLetterSummary(pydantic.BaseModel):
    """A message that nobody could handle. `queue` is where it died; `replayed_at` is null while it waits for a person."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    queue: str
    reason: Reason
    error: str | None
    message_id: str | None
    message_type: str | None
    retry_count: Annotated[int, Field(description="How often it had been tried again.")]
    size_bytes: Annotated[int, Field(description="Of its body.")]
    died_at: datetime
    replayed_at: Annotated[datetime | None, Field(description="Last.")]
    replayed_by: Annotated[int | None, Field(description="The identity that did it last.")]
    replay_count: int
    created: datetime
    updated: datetime


class BodyEncoding(StrEnum):
    UTF8 = "utf-8"
    BASE64 = "base64"


class DeadLetterResponse(DeadLetterSummary):
    """The body as it came: text where it is UTF-8, else base64. It may hold anything, also what nobody should see."""

    body: str
    body_encoding: BodyEncoding

    @classmethod
    def of(cls, letter: Letter) -> Self:
        text, encoding = _shown(letter.body)
        own = {name: getattr(letter, name) for name in DeadLetterSummary.model_fields}
        return cls.model_validate(own | {"body": text, "body_encoding": encoding})


class ReplayRequest(pydantic.BaseModel):
    """Which of those that wait; without a wish all of them are meant."""

    queue: str | None = None
    reason: Reason | None = None
    message_type: str | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, description="At most so many.")] = (
        MOST_AT_ONCE
    )

    @property
    def filters(self) -> LetterFilters:
        return LetterFilters(queue=self.queue, reason=self.reason, message_type=self.message_type)


class RefusedLetter(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    error: str


class ReplayedResponse(pydantic.BaseModel):
    """`remaining` counts those like them that still wait, the refused ones and what died again meanwhile included."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    replayed: int
    refused: list[RefusedLetter]
    remaining: int


def _shown(body: bytes) -> tuple[str, BodyEncoding]:
    try:
        return body.decode(), BodyEncoding.UTF8
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), BodyEncoding.BASE64
