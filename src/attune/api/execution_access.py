"""Which executions a caller may see and stop: those that a grant covers, and his own.

His own are those that he asked for himself. A program that runs as an execution has nothing of its identity's own;
it sees the execution that it is.
"""

from typing import Final

from attune.catalog.refs import pack_part
from attune.identities.constraints import Target, execution_of
from attune.identities.rights import Rights, refusal
from attune.identities.row_conditions import NEVER, Columns, Condition, either
from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import ExecutionSummary
from attune.pipeline.executions.queries import holds_for
from attune.pipeline.listing import pack_of
from attune.store.database import Tx

_BELOW: Final = """x.id IN (WITH RECURSIVE line(id) AS (
    SELECT :scope::bigint UNION ALL
    SELECT child.id FROM execution child JOIN line ON child.parent = line.id) SELECT id FROM line)"""

COLUMNS: Final = Columns(
    id="x.id",
    ref="x.action_ref",
    pack_ref=pack_of("x.action_ref"),
    owner="x.executor",
    executor="x.executor",
    line=_BELOW,
)


def readable_by(rights: Rights) -> Condition:
    return either([rights.condition("executions", "read", COLUMNS), _own(rights, itself=True)])


def cancellable_by(rights: Rights) -> Condition:
    return either([rights.condition("executions", "cancel", COLUMNS), _own(rights, itself=False)])


def may_read(rights: Rights, one: ExecutionSummary) -> bool:
    """The same as `readable_by`, for a row at hand. Descendants of a token's execution are not looked for."""
    caller = rights.caller
    if rights.is_execution and execution_of(caller) == one.id:
        return True
    if not rights.is_execution and one.executor == caller.identity:
        return True
    target = Target(
        id=one.id,
        ref=one.action_ref,
        pack_ref=pack_part(one.action_ref),
        owner=one.executor,
        executor=one.executor,
        line=(one.id,),
    )
    return rights.allows("executions", "read", target)


async def check_readable(tx: Tx, rights: Rights, execution_id: ExecutionId) -> None:
    if not await holds_for(tx, execution_id, readable_by(rights)):
        raise NotFound(f"There is no execution {execution_id}.", id=execution_id)


async def check_cancellable(tx: Tx, rights: Rights, execution_id: ExecutionId) -> None:
    """404 for what the caller may not even see."""
    if not await holds_for(tx, execution_id, cancellable_by(rights)):
        await check_readable(tx, rights, execution_id)
        raise refusal("executions", "cancel")


def _own(rights: Rights, *, itself: bool) -> Condition:
    if not rights.is_execution:
        return Condition("x.executor = :self", {"self": rights.caller.identity})
    own = execution_of(rights.caller)
    return Condition("x.id = :itself", {"itself": own}) if itself and own is not None else NEVER
