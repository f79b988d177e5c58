"""`client.dead_letters`: messages that nobody could handle. For administrators."""

import base64
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, ClassVar, TypedDict, Unpack

import msgspec

from attune.client.calls import delete, post
from attune.client.collection import Collection
from attune.client.models import Done, Page, Stored
from attune.client.operations import Listing, Operation, W
from attune.client.requests import Paging
from attune.kernel.ids import DeadLetterId, IdentityId


class LetterChoice(TypedDict, total=False):
    """`queue` is where they died; `reason` is one of bad_message, failed, retries_exhausted, expired, rejected,
    overflow, unrouted."""

    queue: str
    reason: str
    message_type: str


class LetterFilters(LetterChoice, Paging, total=False):
    """`replayed` False leaves those that wait for a person."""

    replayed: bool


class ReplayChoice(LetterChoice, total=False):
    """At most 1000 are replayed at once."""

    limit: int


class DeadLetterSummary(Stored, frozen=True, kw_only=True):
    id: DeadLetterId
    queue: str
    reason: str
    died_at: datetime
    error: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    retry_count: int = 0
    size_bytes: int = 0
    replayed_at: datetime | None = None
    replayed_by: IdentityId | None = None
    replay_count: int = 0


class DeadLetter(DeadLetterSummary, frozen=True, kw_only=True):
    """`body` is text, or base64 where it is none; `content` has the bytes."""

    body: str = ""
    body_encoding: str = "utf-8"

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.body) if self.body_encoding == "base64" else self.body.encode()


class RefusedLetter(msgspec.Struct, frozen=True, kw_only=True):
    id: DeadLetterId
    error: str


class ReplayedLetters(msgspec.Struct, frozen=True, kw_only=True):
    """`remaining` counts those like them that still wait, the refused ones included."""

    replayed: int
    refused: list[RefusedLetter] = []
    remaining: int = 0


class DeadLetters(Collection[W, DeadLetterSummary, DeadLetter]):
    noun: ClassVar[str] = "dead-letters"
    summary: ClassVar[type[Any]] = DeadLetterSummary
    detail: ClassVar[type[Any]] = DeadLetter

    @Operation
    async def list(self, **filters: Unpack[LetterFilters]) -> Page[DeadLetterSummary]:
        """Newest first."""
        return await self._page(filters)

    @Listing
    async def iterate(
        self, **filters: Unpack[LetterFilters]
    ) -> AsyncGenerator[DeadLetterSummary, None]:
        async for item in self._all(filters):
            yield item

    @Operation
    async def replay(self, id_: int) -> DeadLetterSummary:
        """Send it back to the queue that it died in; `Conflict` where that is gone."""
        return await self._session.run(post(self._path(id_, "replay"), DeadLetterSummary))

    @Operation
    async def replay_many(self, **choice: Unpack[ReplayChoice]) -> ReplayedLetters:
        """Those that wait, oldest first. One that cannot be sent does not keep the others from it."""
        return await self._session.run(post(self._path("replay"), ReplayedLetters, choice))

    @Operation
    async def delete(self, id_: int) -> Done:
        return await self._session.run(delete(self._path(id_), Done))
