"""/admin/decisions: the log of what the queues decided, from which anybody can prove that order and limits held."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

import msgspec
import pydantic
from fastapi import APIRouter, Query
from pydantic import AfterValidator, AwareDatetime, Field

from attune.api.administrators import require_administrator
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.parts import ApiParts
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import LaneId
from attune.pipeline.queues.decision_queries import (
    Cursor,
    LoggedDecision,
    WantedDecisions,
    decision_page,
)

_DEFAULT_SIZE: Final = 100
_LARGEST_SIZE: Final = 1000
_LARGEST: Final = 2**63 - 1


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be a time between the years 1 and 9999 in UTC") from error


Since = Annotated[
    Annotated[AwareDatetime, AfterValidator(_in_utc)] | None,
    Query(description="In each lane from the first decision that is not older on."),
]
OfLane = Annotated[
    int | None,
    Query(
        ge=-_LARGEST,
        le=_LARGEST,
        description="Of this lane alone; 0 is the whole system, and -7 the pool 7 that lanes share.",
    ),
]
OfAction = Annotated[
    str | None, Query(min_length=1, max_length=255, description="Of this action's lanes.")
]
After = Annotated[str | None, Query(description="`next` of the page before.", examples=["3.17"])]
Size = Annotated[int, Query(ge=1, description="Decisions of a page; above 1000 it is 1000.")]

_ITEMS: Final = (
    'In their order: ["joined", execution, sequence, band, reason], ["admitted", execution, sequence, band,'
    ' passed_over, rule], ["left", execution, sequence, band, held], ["refused", execution, gate, text],'
    ' ["priority", execution, sequence, before, after, by], ["paused", by], ["resumed", by],'
    ' ["limit", before, after, why], ["came", execution, sequence, band, held], ["went", execution,'
    ' sequence, band, held, to], ["delayed", execution, sequence, band, until], ["returned", execution, sequence,'
    ' band, reason, origin], ["dropped", execution, band], ["handed", execution, band, lane, worker],'
    ' ["counted", lane, change, admitted].'
)


class DecisionResponse(pydantic.BaseModel):
    """What one transaction decided in one lane. `action_ref` and `group` are null for the whole system and for pools."""

    lane: int
    number: Annotated[int, Field(description="Counts the decisions of a lane without a gap.")]
    at: datetime
    action_ref: str | None
    group: Annotated[Any, Field(description="The values that the lane stands for, if any.")]
    active_before: int
    active_after: int
    queue_length: int
    max_concurrent: int | None
    reason: Annotated[str | None, Field(description="What its head waits for afterwards.")]
    items: Annotated[list[list[Any]], Field(description=_ITEMS)]

    @classmethod
    def of(cls, row: LoggedDecision) -> Self:
        return cls(
            lane=row.lane,
            number=row.number,
            at=row.at,
            action_ref=row.action_ref,
            group=msgspec.json.decode(row.group_key) if row.group_key else None,
            active_before=row.active_before,
            active_after=row.active_after,
            queue_length=row.queue_length,
            max_concurrent=row.max_concurrent,
            reason=row.reason,
            items=row.items or [],
        )


class DecisionsResponse(pydantic.BaseModel):
    """Lane after lane, each by number. `next` is null at the end; a page before it may be short."""

    items: list[DecisionResponse]
    next: str | None


def decision_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/admin", "admin")

    @routes.get("/decisions", summary="Read the decision log", responses=refusals(403))
    async def list_decisions(
        rights: RightsOf,
        since: Since = None,
        lane: OfLane = None,
        action_ref: OfAction = None,
        after: After = None,
        limit: Size = _DEFAULT_SIZE,
    ) -> Answer[DecisionsResponse]:
        require_administrator(rights, "The decision log is read")
        of_lane = None if lane is None else LaneId(lane)
        wanted = WantedDecisions(since=since, lane=of_lane, action_ref=action_ref)
        size = min(limit, _LARGEST_SIZE)
        found = await parts.database.read(decision_page, wanted, _cursor(after), size)
        items = [DecisionResponse.of(row) for row in found.rows]
        return Answer(data=DecisionsResponse(items=items, next=_written(found.next)))

    return routes


def _written(cursor: Cursor | None) -> str | None:
    return None if cursor is None else f"{cursor.lane}.{cursor.number}"


def _cursor(text: str | None) -> Cursor | None:
    if text is None:
        return None
    lane, _, number = text.partition(".")
    if not (_is_number(lane.removeprefix("-")) and _is_number(number)):
        raise InvalidInput("after: must be the `next` of a page, such as 3.17", field="after")
    return Cursor(LaneId(int(lane)), int(number))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _LARGEST
