"""Queries, bodies and answers of /actions/{ref}/queue, under the names of the contract."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self

import msgspec
import pydantic
from fastapi import Query
from pydantic import Field

from attune.api.fields import JsonObject
from attune.kernel.errors import InvalidInput
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.model import State
from attune.pipeline.queues.places import LaneCounts, Place, group_values

GroupText = Annotated[
    str | None,
    Query(
        max_length=10_000,
        description='Only that group, as a JSON object of its values: {"customer": "a"}.',
    ),
]


def group_of(text: str | None) -> dict[str, Any] | None:
    """A group as it stands in a query; null where none is asked for."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        rule = 'must be a JSON object of the group\'s values, such as {"customer": "a"}'
        raise InvalidInput(f"group: {rule}", field="group") from error


class GroupRequest(pydantic.BaseModel):
    group: JsonObject | None = Field(
        default=None, description="Only the queue of that group; null for all of the action's."
    )


class QueueEntry(pydantic.BaseModel):
    """`position` counts from 1, in the order in which they will go; null for what a worker has.

    `group` is absent where the action has one queue.
    """

    execution: int
    position: int | None
    priority: str
    state: State
    reason: GateName | None
    enqueued_at: datetime
    group: JsonObject | None = None

    @classmethod
    def of(cls, place: Place) -> Self:
        return cls(
            execution=place.execution,
            position=place.position,
            priority=place.priority.word,
            state=place.state,
            reason=place.reason,
            enqueued_at=place.enqueued_at,
            group=group_values(place.group_key) or None,
        )

    @pydantic.model_serializer(mode="wrap")
    def _without_an_empty_group(
        self, write: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        found: dict[str, Any] = write(self)
        if found["group"] is None:
            del found["group"]
        return found


class QueueState(pydantic.BaseModel):
    """The queues of an action together, or the one of a group; `queues` is how many they are."""

    action_ref: str
    group: JsonObject | None
    queues: int
    paused: bool
    queue_length: int
    active_count: int

    @classmethod
    def of(cls, action_ref: str, group: JsonObject | None, lanes: Sequence[LaneCounts]) -> Self:
        return cls(
            action_ref=action_ref,
            group=group,
            queues=len(lanes),
            paused=bool(lanes) and all(lane.paused for lane in lanes),
            queue_length=sum(lane.queue_length for lane in lanes),
            active_count=sum(lane.active_count for lane in lanes),
        )


class ClearedQueue(QueueState):
    """`cancelled` is how many of those that waited have ended so."""

    cancelled: int
