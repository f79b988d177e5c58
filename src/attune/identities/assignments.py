"""Who holds which permission sets, and who comes first."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.catalog.rows import PERMISSION_SETS, ids
from attune.identities.model import ADMINISTRATOR, LOCAL_OPERATOR, Held, PermissionAssignment
from attune.kernel.ids import IdentityId, PermissionAssignmentId, PermissionSetId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.store.database import Answer, Tx
from attune.store.schema import first_administrator, permission_assignment


class _FirstPlace(msgspec.Struct, frozen=True):
    id: int
    login: str
    created: datetime
    updated: datetime


class HeldRow(msgspec.Struct, frozen=True):
    """One for each assignment of an identity, or one without."""

    frozen: bool
    attributes: dict[str, Any]
    permission_set_ref: str | None


_HELD: Final = """
    SELECT i.frozen, i.attributes, a.permission_set_ref FROM identity i
      LEFT JOIN permission_assignment a ON a.identity = i.id WHERE i.id = :id
"""


async def take_first_place(tx: Tx, login: str, now: datetime) -> bool:
    """True for one login ever: the key makes those who come at once wait for each other's commit.

    It is taken before the identity is inserted, by everyone, so that two such steps cannot deadlock.
    """
    place = _FirstPlace(1, login, now, now)
    return await tx.insert(first_administrator, [place], skip_existing=True) == 1


async def assign(tx: Tx, identity: IdentityId, refs: Sequence[str], now: datetime) -> None:
    """A ref without a set yet is held all the same, and counts from when a pack brings the set."""
    if not refs:
        return
    known = await _known_sets(tx, refs)
    new_ids = await tx.next_ids(permission_assignment, len(refs))
    rows = [
        PermissionAssignment(
            id=PermissionAssignmentId(new),
            identity=identity,
            permission_set=PermissionSetId(known[ref]) if ref in known else None,
            permission_set_ref=ref,
            created=now,
            updated=now,
        )
        for new, ref in zip(new_ids, refs, strict=True)
    ]
    await tx.insert(permission_assignment, rows, skip_existing=True)


async def held_by(tx: Tx, identity: IdentityId) -> Held | None:
    """None when it is gone or frozen. One query, because each request asks."""
    return held_from(await tx.all(HeldRow, _HELD, id=identity))


async def ask_held(tx: Tx, identity: IdentityId) -> Answer[HeldRow]:
    """The same along with the statements that follow; `held_from` reads the answer."""
    return await tx.answer_later(HeldRow, _HELD, id=identity)


def held_from(rows: Sequence[HeldRow]) -> Held | None:
    if not rows or rows[0].frozen:
        return None
    refs = (row.permission_set_ref for row in rows if row.permission_set_ref is not None)
    return Held(tuple(sorted(refs)), rows[0].attributes)


async def has_ended(tx: Tx, execution: int) -> bool:
    status = await tx.first(
        ExecutionStatus, "SELECT status FROM execution WHERE id = :id", id=execution
    )
    return status in TERMINAL


async def grants_of(tx: Tx, refs: Collection[str]) -> list[dict[str, Any]]:
    """Every grant of these sets."""
    sets = await tx.all(
        list[dict[str, Any]],
        "SELECT grants FROM permission_set WHERE ref = ANY(:refs::text[]) ORDER BY ref",
        refs=list(refs),
    )
    return [grant for grants in sets for grant in grants]


async def administrator_exists(tx: Tx) -> bool:
    """Somebody, that is: the operator of this machine holds the set for as long as its process runs."""
    found = await tx.first(
        int,
        "SELECT a.id FROM permission_assignment a JOIN identity i ON i.id = a.identity"
        " WHERE a.permission_set_ref = :ref AND i.login <> :operator LIMIT 1",
        ref=ADMINISTRATOR,
        operator=LOCAL_OPERATOR,
    )
    return found is not None


async def administrator_remains(tx: Tx) -> bool:
    """The same, with nobody else making one until this step ends."""
    await tx.execute("SELECT id FROM first_administrator WHERE id = 1 FOR UPDATE")
    return await administrator_exists(tx)


async def unknown_sets(tx: Tx, refs: Iterable[str]) -> list[str]:
    wanted = list(refs)
    known = await _known_sets(tx, wanted)
    return [ref for ref in wanted if ref not in known]


async def core_is_loaded(tx: Tx) -> bool:
    """Whether the catalog can be asked for a set at all."""
    return await tx.first(int, "SELECT id FROM pack WHERE ref = 'core'") is not None


async def link_waiting(tx: Tx) -> None:
    """Join what is held to sets that came after it, so that it goes with them, too."""
    await tx.execute(
        "UPDATE permission_assignment SET permission_set ="
        " (SELECT s.id FROM permission_set s WHERE s.ref = permission_assignment.permission_set_ref)"
        " WHERE permission_set IS NULL AND permission_set_ref IN (SELECT ref FROM permission_set)"
    )


async def _known_sets(tx: Tx, refs: Sequence[str]) -> dict[str, int]:
    return await ids(tx, PERMISSION_SETS, "ref = ANY(:refs::text[])", refs=list(refs))
