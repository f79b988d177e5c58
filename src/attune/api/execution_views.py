"""Executions as they are shown: never with a parameter that the action calls secret."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from attune.api.execution_models import ExecutionResponse
from attune.catalog.definitions import Definitions
from attune.catalog.schemas import ParameterSchema, compile_schema
from attune.kernel.ids import ActionDefinitionId
from attune.pipeline.executions.model import Execution
from attune.store.database import Database

_KEPT_AT_MOST: Final = 10_000
_AT_ONCE: Final = 500


class ExecutionViews:
    """Knows what is secret from the definition under which the execution was requested, not from today's action."""

    def __init__(self, database: Database, definitions: Definitions) -> None:
        self._database = database
        self._definitions = definitions
        self._schemas: dict[ActionDefinitionId, ParameterSchema] = {}

    async def one(self, execution: Execution) -> ExecutionResponse:
        [shown] = await self.all([execution])
        return shown

    async def all(self, executions: Sequence[Execution]) -> list[ExecutionResponse]:
        await self._learn({one.definition for one in executions})
        shown: list[ExecutionResponse] = []
        for start in range(0, len(executions), _AT_ONCE):
            if start:
                await asyncio.sleep(0)  # ten thousand at once would make everybody else wait
            shown += [self._shown(one) for one in executions[start : start + _AT_ONCE]]
        return shown

    def _shown(self, one: Execution) -> ExecutionResponse:
        config = self._schemas[one.definition].redact(one.config)
        return ExecutionResponse.model_validate(msgspec.structs.replace(one, config=config))

    async def _learn(self, ids: set[ActionDefinitionId]) -> None:
        missing = ids - self._schemas.keys()
        if not missing:
            return
        if len(self._schemas) >= _KEPT_AT_MOST:
            self._schemas, missing = {}, ids
        found = await self._database.read(self._definitions.get, missing)
        self._schemas |= {each: compile_schema(it.param_schema) for each, it in found.items()}
