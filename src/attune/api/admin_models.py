"""Bodies and answers of /admin, under the names of the contract."""

from datetime import datetime
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field, WithJsonSchema

from attune.api.execution_models import PriorityWord
from attune.api.fields import JsonObject
from attune.catalog.runtime_settings import NAMES, RuntimeSettings, SettingsInForce
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.overview import QueueOverview, SystemQueue
from attune.pipeline.queues.places import group_values


def _number(kind: str, **bounds: int) -> dict[str, Any]:
    return {"anyOf": [{"type": kind, **bounds}, {"type": "null"}]}


_SECONDS = _number("number", exclusiveMinimum=0)


class _Settings(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    max_concurrent_executions: int | None = Field(
        description="How many workers may have at once; 0 holds everything."
        " By default what the active workers can take together."
    )
    max_queue_length: int | None = Field(
        description="How many may wait in a queue. By default executor.queue.max_queue_length."
    )
    queue_timeout_seconds: float | None = Field(
        description="How long one may wait, for a slot or for a worker. By default executor.queue.queue_timeout_seconds."
    )
    ageing_seconds: float | None = Field(
        description="So many seconds of waiting raise an execution by one band. By default none do."
    )


class SettingsResponse(_Settings):
    """As they were set, null for the default; `effective` is what holds now."""

    effective: _Settings

    @classmethod
    def of(cls, chosen: RuntimeSettings, effective: SettingsInForce) -> Self:
        own = {name: getattr(chosen, name) for name in chosen.__struct_fields__}
        return cls(**own, effective=_Settings.model_validate(effective))


class SettingsAnswer(pydantic.BaseModel):
    """`message` names fields of the body that are no settings: those are ignored, as everywhere."""

    data: SettingsResponse
    message: str | None = None

    @pydantic.model_serializer(mode="wrap")
    def _without_an_empty_message(
        self, write: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


class UpdateSettingsRequest(pydantic.BaseModel):
    """Any of the settings, null for the default; what is not named stays as it is.

    Values are judged where they are set, so that there is one rule for each.
    """

    model_config = pydantic.ConfigDict(extra="allow")

    max_concurrent_executions: Annotated[Any, WithJsonSchema(_number("integer", minimum=0))] = None
    max_queue_length: Annotated[Any, WithJsonSchema(_number("integer", minimum=1))] = None
    queue_timeout_seconds: Annotated[Any, WithJsonSchema(_SECONDS)] = None
    ageing_seconds: Annotated[Any, WithJsonSchema(_SECONDS)] = None

    @property
    def changes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES if name in self.model_fields_set}

    @property
    def unknown(self) -> list[str]:
        """Fields that are neither settings nor what an answer has beside them."""
        return sorted(self.model_fields_set - {*NAMES, "effective"})


class PriorityRequest(pydantic.BaseModel):
    priority: PriorityWord = Field(description="In any letter case.")


class PriorityResponse(pydantic.BaseModel):
    id: int
    priority: str


class SystemQueueResponse(pydantic.BaseModel):
    """`queue_depth` waits, for a slot of its queue or for a worker; `active_count` is what workers have."""

    queue_depth: int
    active_count: int
    max_concurrent: int
    by_priority: dict[str, int]

    @classmethod
    def of(cls, found: SystemQueue, most: int) -> Self:
        return cls(
            queue_depth=found.queue_depth,
            active_count=found.active_count,
            max_concurrent=most,
            by_priority={band.word: found.by_priority[band] for band in Priority},
        )


class QueueSummary(pydantic.BaseModel):
    """`active_count` have a slot, of whom `ready_count` wait for a worker. `max_concurrent` is null for no limit.

    `reason` is what the first in line waits for; `retry_at` is when that gate opens by itself.
    """

    id: int
    action_ref: str
    group: JsonObject | None
    queue_length: int
    active_count: int
    ready_count: int
    max_concurrent: int | None
    paused: bool
    reason: GateName | None
    retry_at: datetime | None
    policy_ref: str | None
    oldest_enqueued_at: datetime | None
    total_enqueued: int
    total_completed: int
    updated: datetime

    @classmethod
    def of(cls, found: QueueOverview) -> Self:
        own = {name: getattr(found, name) for name in found.__struct_fields__}
        del own["group_key"]
        return cls(**own, group=group_values(found.group_key) or None)
