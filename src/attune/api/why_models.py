"""Answers of /executions/{id}/why and /history, under the names of the contract."""

from datetime import datetime
from typing import Annotated, Self

import pydantic
from pydantic import Field

from attune.catalog.retrying import Cause
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.estimate import Estimate
from attune.pipeline.queues.story import Waited
from attune.pipeline.why.model import History, Why


def _is_absent(value: object) -> bool:
    return value is None


class BlockerResponse(pydantic.BaseModel):
    """A gate that is closed now. What does not concern it is absent."""

    gate: GateName
    text: str
    policy_ref: str | None = Field(default=None, exclude_if=_is_absent)
    limit: int | None = Field(default=None, exclude_if=_is_absent)
    holders: list[int] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="Executions that have what it waits for, oldest first, at most 20.",
    )
    until: datetime | None = Field(
        default=None, exclude_if=_is_absent, description="When it opens by itself."
    )

    @classmethod
    def of(cls, gate: Gate) -> Self:
        return cls(
            gate=gate.name,
            text=gate.text,
            policy_ref=gate.policy_ref,
            limit=gate.limit,
            holders=list(gate.holders) or None,
            until=gate.until,
        )


class EstimateResponse(pydantic.BaseModel):
    """Seconds until it starts: as likely less as more, and what nine of ten stay below."""

    p50_seconds: float
    p90_seconds: float

    @classmethod
    def of(cls, found: Estimate) -> Self:
        return cls(p50_seconds=round(found.p50_seconds, 3), p90_seconds=round(found.p90_seconds, 3))


class WaitResponse(pydantic.BaseModel):
    """`until` is null for what it waits for now."""

    reason: GateName
    since: datetime
    until: datetime | None

    @classmethod
    def of(cls, waited: Waited) -> Self:
        return cls(reason=waited.reason, since=waited.since, until=waited.until)


class WhyResponse(pydantic.BaseModel):
    waiting: Annotated[bool, Field(description="False once a worker has it.")]
    position: Annotated[
        int | None, Field(description="From 1 in its queue; null deep inside of a very long one.")
    ]
    first_blocker: Annotated[GateName | None, Field(description="The gate to look at first.")]
    blockers: Annotated[
        list[BlockerResponse], Field(description="In the order in which they have to give way.")
    ]
    next: Annotated[str | None, Field(description="What must happen next.")]
    estimate: Annotated[
        EstimateResponse | None, Field(description="From recent run times; null if nobody knows.")
    ]
    history: list[WaitResponse]

    @classmethod
    def of(cls, why: Why) -> Self:
        return cls(
            waiting=why.waiting,
            position=why.position,
            first_blocker=why.first_blocker,
            blockers=[BlockerResponse.of(each) for each in why.blockers],
            next=why.next,
            estimate=EstimateResponse.of(why.estimate) if why.estimate else None,
            history=[WaitResponse.of(each) for each in why.history],
        )


class StatusResponse(pydantic.BaseModel):
    status: ExecutionStatus
    at: datetime


class AttemptResponse(pydantic.BaseModel):
    """An attempt that was followed by another; `cause` is why there was need of one."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    attempt: int
    worker: int | None
    status: ExecutionStatus
    cause: Cause
    error: str | None
    started_at: datetime | None
    ended_at: datetime


class HistoryResponse(pydantic.BaseModel):
    """`statuses` are those of the last attempt whose time is known; `waits` what it waited for, by reason.

    `attempts` are those before the last.
    """

    attempt: int
    statuses: list[StatusResponse]
    waits: list[WaitResponse]
    attempts: list[AttemptResponse]

    @classmethod
    def of(cls, history: History) -> Self:
        return cls(
            attempt=history.attempt,
            statuses=[StatusResponse(status=each.status, at=each.at) for each in history.statuses],
            waits=[WaitResponse.of(each) for each in history.waits],
            attempts=[AttemptResponse.model_validate(each) for each in history.attempts],
        )
