"""Which workers may run something, under the names of the contract."""

from enum import StrEnum

import pydantic
from pydantic import Field


class TolerationOperator(StrEnum):
    EQUAL = "equal"
    EXISTS = "exists"


class TaintEffect(StrEnum):
    NO_SCHEDULE = "no_schedule"
    PREFER_NO_SCHEDULE = "prefer_no_schedule"


class LabelExpressionOperator(StrEnum):
    IN = "in"
    NOT_IN = "not_in"
    EXISTS = "exists"
    DOES_NOT_EXIST = "does_not_exist"


class WorkerToleration(pydantic.BaseModel):
    key: str
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str | None = None
    effect: TaintEffect | None = None


class WorkerLabelExpression(pydantic.BaseModel):
    key: str
    operator: LabelExpressionOperator
    values: list[str] = []


class WorkerSelectorTerm(pydantic.BaseModel):
    match_labels: dict[str, str] = {}
    match_expressions: list[WorkerLabelExpression] = []


class PreferredWorkerSelectorTerm(pydantic.BaseModel):
    preference: WorkerSelectorTerm
    weight: int = Field(default=1, ge=1, le=100)


class WorkerAffinity(pydantic.BaseModel):
    required: list[WorkerSelectorTerm] = []
    preferred: list[PreferredWorkerSelectorTerm] = []
    anti_affinity: list[WorkerSelectorTerm] = []
