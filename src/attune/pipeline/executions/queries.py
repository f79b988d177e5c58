"""Finding executions again: by what they are, what asked for them and how they ended.

What lives is found through `entry` and `delay`, which are small, and what went wrong through the column `failure`, which is
indexed. Lists never read parameters or results; only `result_contains` looks at them, because it must.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Final

import msgspec

from attune.identities.row_conditions import ALWAYS, NEVER, Condition
from attune.kernel.ids import EnforcementId, ExecutionId, IdentityId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.decide import failure_word
from attune.pipeline.executions.model import Execution, ExecutionSummary
from attune.pipeline.listing import (
    WHOLE_PACK,
    Listed,
    Source,
    Window,
    all_of,
    equals,
    newest,
    ref_like,
)
from attune.pipeline.listing import total as total_of
from attune.store.database import Tx

_S = ExecutionStatus

EXECUTIONS: Final = Listed(
    "execution", ExecutionSummary, ", ".join(ExecutionSummary.__struct_fields__)
)

_STANDING: Final = Source("entry e JOIN execution x ON x.id = e.execution", "e.execution")
_WAITING: Final = Source(
    _STANDING.sql, _STANDING.id, beside=("delay e JOIN execution x ON x.id = e.execution",)
)
_HANDED: Final = frozenset({_S.SCHEDULED, _S.RUNNING, _S.CANCELING})
# The names in these statements are those of our own structs.
_DETAIL: Final = f"""
    SELECT {", ".join(Execution.__struct_fields__)},
           coalesce(
               (SELECT CASE WHEN e.state = 'queued' THEN coalesce(l.reason, e.reason) ELSE e.reason END
                  FROM entry e JOIN lane l ON l.id = e.lane WHERE e.execution = x.id),
               (SELECT 'delay' FROM delay d WHERE d.execution = x.id)) AS reason
      FROM execution x WHERE x.id = :id
"""  # noqa: S608
_REFS_OF_PACK: Final = """
    SELECT DISTINCT action_ref FROM lane WHERE substr(action_ref, 1, :length) = :start
"""
_BY_IDS: Final = f"SELECT {EXECUTIONS.columns} FROM execution x WHERE x.id = ANY(:ids::bigint[])"  # noqa: S608


class ExecutionFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What is null is not asked for. Refs are exact or `pack.*`; `pack_name` is the pack of the action."""

    status: ExecutionStatus | None = None
    action_ref: str | None = None
    pack_name: str | None = None
    rule_ref: str | None = None
    trigger_ref: str | None = None
    executor: IdentityId | None = None
    result_contains: str | None = None
    enforcement: EnforcementId | None = None
    parent: ExecutionId | None = None
    top_level_only: bool = False


class ExecutionDetail(Execution, frozen=True, kw_only=True):
    """`reason` is what it waits for; null for one that does not wait."""

    reason: str | None = None


class ExecutionStats(msgspec.Struct, frozen=True, kw_only=True):
    """`running` is what a worker has started, `pending` what none has."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    running: int = 0
    pending: int = 0
    cancelled: int = 0
    timeout: int = 0
    abandoned: int = 0


async def list_executions(
    tx: Tx, filters: ExecutionFilters, readable: Condition, window: Window
) -> list[ExecutionSummary]:
    where = await _where(tx, filters, readable)
    return await newest(tx, EXECUTIONS, where, window, _source(filters))


async def count_executions(tx: Tx, filters: ExecutionFilters, readable: Condition) -> int:
    where = await _where(tx, filters, readable)
    return await total_of(tx, EXECUTIONS, where, _source(filters))


async def find_execution(
    tx: Tx, execution_id: ExecutionId, readable: Condition
) -> ExecutionDetail | None:
    sql = f"{_DETAIL} AND {readable.sql}"
    return await tx.first(ExecutionDetail, sql, id=execution_id, **readable.values)


async def summaries(tx: Tx, ids: Collection[ExecutionId]) -> dict[ExecutionId, ExecutionSummary]:
    found = await tx.all(ExecutionSummary, _BY_IDS, ids=sorted(ids))
    return {one.id: one for one in found}


async def holds_for(tx: Tx, execution_id: ExecutionId, condition: Condition) -> bool:
    sql = f"SELECT x.id FROM execution x WHERE x.id = :id AND {condition.sql}"  # noqa: S608
    return await tx.first(int, sql, id=execution_id, **condition.values) is not None


async def hidden_keys(tx: Tx, keys: Collection[str], readable: Condition) -> list[str]:
    """Those of these idempotency keys that belong to executions for which the condition does not hold."""
    sql = f"""
        SELECT x.idempotency_key FROM execution x
         WHERE x.idempotency_key = ANY(:keys::text[]) AND ({readable.sql}) IS NOT TRUE
         ORDER BY x.idempotency_key
    """  # noqa: S608 - the condition is of our own text
    return await tx.all(str, sql, keys=sorted(keys), **readable.values)


class _Count(msgspec.Struct, frozen=True):
    status: ExecutionStatus
    count: int


async def stats(tx: Tx, readable: Condition) -> ExecutionStats:
    """Counted from small tables and an index; those that completed are what remains of the total."""
    total = await total_of(tx, EXECUTIONS, readable)
    wrong = all_of([Condition("x.failure IS NOT NULL", {}), readable])
    counts: dict[ExecutionStatus, int] = defaultdict(int)
    for column, source, where in (
        ("x.status", _WAITING, readable),
        ("x.failure", EXECUTIONS.source, wrong),
    ):
        for arm in source.arms:
            for one in await tx.all(_Count, _counted(column, arm, where), **where.values):
                counts[one.status] += one.count
    return ExecutionStats(
        total=total,
        completed=total - sum(counts.values()),
        failed=counts.get(_S.FAILED, 0),
        running=counts.get(_S.RUNNING, 0) + counts.get(_S.CANCELING, 0),
        pending=sum(counts.get(each, 0) for each in (_S.REQUESTED, _S.SCHEDULING, _S.SCHEDULED)),
        cancelled=counts.get(_S.CANCELLED, 0),
        timeout=counts.get(_S.TIMEOUT, 0),
        abandoned=counts.get(_S.ABANDONED, 0),
    )


def _counted(column: str, source: str, where: Condition) -> str:
    return f"""
        SELECT {column} AS status, count(*) AS count FROM {source}
         WHERE {where.sql} GROUP BY {column}
    """  # noqa: S608 - our own names


def _source(filters: ExecutionFilters) -> Source | None:
    if filters.status is None or filters.status in TERMINAL:
        return None
    return _STANDING if filters.status in _HANDED else _WAITING


async def _where(tx: Tx, filters: ExecutionFilters, readable: Condition) -> Condition:
    return all_of(
        [
            readable,
            _status(filters.status),
            await _actions(tx, filters.action_ref),
            await _actions(tx, filters.pack_name and filters.pack_name + WHOLE_PACK, "pack_refs"),
            ref_like("rule_ref", filters.rule_ref),
            ref_like("trigger_ref", filters.trigger_ref),
            equals("executor", "by_executor", filters.executor),
            equals("enforcement", "of_enforcement", filters.enforcement),
            equals("parent", "of_parent", filters.parent),
            Condition("x.parent IS NULL", {}) if filters.top_level_only else ALWAYS,
            _result(filters.result_contains),
        ]
    )


def _status(status: ExecutionStatus | None) -> Condition:
    if status is None:
        return ALWAYS
    if failure_word(status) is not None:
        return Condition("x.failure = :status", {"status": status})
    sql = "x.status = :status"
    return Condition(
        sql + " AND e.state = 'handed'" if status in _HANDED else sql, {"status": status}
    )


async def _actions(tx: Tx, wanted: str | None, name: str = "action_refs") -> Condition:
    """A pack's actions are those that ever had a queue, so that an index finds what was run of each."""
    if wanted is None or not wanted.endswith(WHOLE_PACK):
        return equals("action_ref", "action_ref", wanted)
    start = wanted.removesuffix("*")
    refs = await tx.all(str, _REFS_OF_PACK, length=len(start), start=start)
    if len(refs) == 1:
        return equals("action_ref", name, refs[0])
    return Condition(f"x.action_ref = ANY(:{name}::text[])", {name: refs}) if refs else NEVER


def _result(text: str | None) -> Condition:
    """Within the strings and numbers of a result, in any letter case."""
    if not text:
        return ALWAYS
    inner = msgspec.json.encode(text).decode()[1:-1].lower()
    escaped = inner.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return Condition(
        "lower(x.result::text) LIKE :result_pattern ESCAPE '!'", {"result_pattern": f"%{escaped}%"}
    )
