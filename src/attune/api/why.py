"""/executions/{id}/why and /history: what an execution waits for, and what it has waited for."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, TypeVar

from fastapi import APIRouter

from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.execution_access import readable_by
from attune.api.parts import ApiParts
from attune.api.row_ids import RowId, checked, unknown
from attune.api.why_models import HistoryResponse, WhyResponse
from attune.identities.rights import Rights
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.queries import holds_for
from attune.pipeline.why.steps import Explainer
from attune.store.database import Tx

T = TypeVar("T")
Question = Callable[[Tx, ExecutionId, datetime], Coroutine[Any, Any, T]]


def why_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/executions", "executions")
    explainer = Explainer(parts.flow.terms, parts.flow.definitions)

    async def ask(rights: Rights, number: int, question: Question[T]) -> T:
        execution_id = ExecutionId(checked(number, "execution"))
        return await parts.database.read(_asked, rights, execution_id, question, parts.clock.now())

    @routes.get("/{id}/why", summary="Tell why it waits", responses=refusals(404))
    async def why(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[WhyResponse]:
        return Answer(data=WhyResponse.of(await ask(rights, id, explainer.why)))

    @routes.get("/{id}/history", summary="Tell what it went through", responses=refusals(404))
    async def history(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[HistoryResponse]:
        return Answer(data=HistoryResponse.of(await ask(rights, id, explainer.history)))

    return routes


async def _asked(
    tx: Tx, rights: Rights, execution_id: ExecutionId, question: Question[T], now: datetime
) -> T:
    """Whoever may see the execution may ask; to everybody else there is none."""
    if not await holds_for(tx, execution_id, readable_by(rights)):
        raise unknown(execution_id, "execution")
    return await question(tx, execution_id, now)
