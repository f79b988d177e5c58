"""Making executions, and the one way in which their status is written."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.decide import failure_word
from attune.pipeline.executions.model import Execution
from attune.pipeline.outbox import Moved
from attune.store.database import Tx
from attune.store.schema import execution
from attune.store.values import Json

_COLUMNS = ", ".join(Execution.__struct_fields__)
# The names in these statements are those of our own structs.
_BY_ID = f"SELECT {_COLUMNS} FROM execution WHERE id = :id"  # noqa: S608
_BY_IDS = f"SELECT {_COLUMNS} FROM execution WHERE id = ANY(:ids::bigint[]) ORDER BY id"  # noqa: S608
_BY_KEYS = f"SELECT {_COLUMNS} FROM execution WHERE idempotency_key = ANY(:keys::text[])"  # noqa: S608
_MOVE = """
    UPDATE execution SET status = :status, failure = :failure, updated = :now
     WHERE id = ANY(:ids::bigint[]) AND status = ANY(:sources::text[])
    RETURNING id, action, action_ref, attempt, status
"""
_END = """
    UPDATE execution SET status = :status, failure = :failure, result = :result, updated = :now
     WHERE id = ANY(:ids::bigint[]) AND status = ANY(:sources::text[])
    RETURNING id, action, action_ref, attempt, status
"""


async def get_execution(tx: Tx, execution_id: int) -> Execution:
    found = await tx.first(Execution, _BY_ID, id=execution_id)
    if found is None:
        raise NotFound(f"There is no execution {execution_id}.", id=execution_id)
    return found


async def executions_of(tx: Tx, ids: Iterable[ExecutionId]) -> list[Execution]:
    """Those of these that there are, by id."""
    return await tx.all(Execution, _BY_IDS, ids=sorted(ids))


async def insert_keyed(tx: Tx, new: Sequence[Execution]) -> dict[ExecutionId, Execution]:
    """Insert executions with idempotency keys; one that is taken leads to the first execution with it.

    The answer has, under the id that each was to get, the execution that there is now.
    """
    if not new:
        return {}
    await tx.insert(execution, new, skip_existing=True)
    first = await by_keys(tx, {one.idempotency_key for one in new if one.idempotency_key})
    return {one.id: first[one.idempotency_key] for one in new if one.idempotency_key}


async def by_keys(tx: Tx, keys: Iterable[str]) -> dict[str, Execution]:
    """The executions that were asked for under these idempotency keys."""
    found = await tx.all(Execution, _BY_KEYS, keys=sorted(keys))
    return {one.idempotency_key: one for one in found if one.idempotency_key}


async def move(
    tx: Tx,
    ids: Iterable[ExecutionId],
    status: ExecutionStatus,
    sources: Iterable[ExecutionStatus],
    now: datetime,
) -> list[Moved]:
    """Write a status where the present one is among `sources`; those that were moved."""
    wanted = sorted(ids)
    if not wanted:
        return []
    return await tx.all(
        Moved,
        _MOVE,
        ids=wanted,
        status=status,
        failure=failure_word(status),
        sources=sorted(sources),
        now=now,
    )


async def end(
    tx: Tx,
    ids: Iterable[ExecutionId],
    status: ExecutionStatus,
    sources: Iterable[ExecutionStatus],
    result: dict[str, object],
    now: datetime,
) -> list[Moved]:
    """The same for a last status, with the result that tells why."""
    wanted = sorted(ids)
    if not wanted:
        return []
    return await tx.all(
        Moved,
        _END,
        ids=wanted,
        status=status,
        failure=failure_word(status),
        result=Json(result),
        sources=sorted(sources),
        now=now,
    )
