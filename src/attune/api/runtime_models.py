"""Bodies and answers of /runtimes, under the names of the contract."""

from datetime import datetime
from typing import Any

import pydantic

from attune.api.fields import Filled, JsonObject, JsonPatch, Ref, TextPatch


class RuntimeSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    ref: str
    pack_ref: str | None
    name: str
    aliases: list[str]
    description: str | None
    created: datetime
    updated: datetime


class RuntimeResponse(RuntimeSummary):
    """`execution_config` is as it was written, with keys that nobody here knows."""

    pack: int | None
    is_adhoc: bool
    distributions: JsonObject
    installation: Any
    execution_config: JsonObject


class CreateRuntimeRequest(pydantic.BaseModel):
    ref: Ref
    name: Filled
    pack_ref: Ref | None = None
    aliases: list[str] | None = None
    description: str | None = None
    distributions: JsonObject | None = None
    installation: Any = None
    execution_config: JsonObject | None = None


class UpdateRuntimeRequest(pydantic.BaseModel):
    name: Filled | None = None
    aliases: list[str] | None = None
    description: TextPatch | None = None
    distributions: JsonObject | None = None
    installation: JsonPatch | None = None
    execution_config: JsonObject | None = None
