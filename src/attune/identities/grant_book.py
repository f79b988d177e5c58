"""The grants of permission sets, kept in this process, so that a request need not ask for them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from attune.catalog.rows import TOPIC
from attune.identities.constraints import Constraints
from attune.identities.model import ADMINISTRATOR, Caller
from attune.identities.rights import (
    STANDARD,
    Grant,
    Rights,
    indexed,
    read_grants,
    standard_grants,
)
from attune.kernel.errors import Forbidden, InvalidInput
from attune.store.database import Database, Tx

_MOST_COMBINATIONS: Final = 10_000


class _Set(msgspec.Struct, frozen=True):
    ref: str
    grants: list[dict[str, Any]]


class GrantBook:
    """Dropped whole whenever something of the catalog changes, in this process or in another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._combined: dict[tuple[str, ...], Mapping[tuple[str, str], Sequence[Constraints]]] = {}
        self._edition = 0
        database.listen(TOPIC, lambda _key: self.forget())

    def forget(self) -> None:
        self._edition += 1
        self._combined.clear()

    async def rights_of(self, caller: Caller) -> Rights:
        refs = caller.permission_set_refs
        if ADMINISTRATOR in refs:
            return Rights(caller, {})
        combined = self._combined.get(refs)
        if combined is None:
            combined = await self._combine(refs)
        if STANDARD in refs:
            own = indexed(standard_grants(caller))
            combined = {
                right: [*combined.get(right, ()), *own.get(right, ())]
                for right in {*combined, *own}
            }
        return Rights(caller, combined)

    async def check_gift(
        self, rights: Rights, refs: Collection[str] | None, field: str, own: Collection[Grant] = ()
    ) -> None:
        """Nobody gives away, through an action, a rule or an execution, what he does not have.

        `own` are grants that come along with the gift, such as those of a pack that is being installed.
        """
        given = set(refs or ()) - {STANDARD, *rights.caller.permission_set_refs}
        if rights.is_everything and not given:
            return
        known = await self._database.read(_sets, sorted(given))
        _check_known(given - {each.ref for each in known} - {ADMINISTRATOR}, field)
        grants = [*own, *(grant for each in known for grant in read_grants(each.grants))]
        if not rights.covers(grants) or (ADMINISTRATOR in given and not rights.is_everything):
            raise Forbidden(
                f"{field}: you have no permission to give rights that you do not have yourself.",
                field=field,
            )

    async def _combine(
        self, refs: tuple[str, ...]
    ) -> Mapping[tuple[str, str], Sequence[Constraints]]:
        edition = self._edition
        sets = await self._database.read(_sets, refs)
        combined = indexed(grant for each in sets for grant in read_grants(each.grants))
        if edition == self._edition and len(self._combined) < _MOST_COMBINATIONS:
            self._combined[refs] = combined
        return combined


async def _sets(tx: Tx, refs: Collection[str]) -> list[_Set]:
    return await tx.all(
        _Set,
        "SELECT ref, grants FROM permission_set WHERE ref = ANY(:refs::text[]) ORDER BY ref",
        refs=list(refs),
    )


def _check_known(unknown: set[str], field: str) -> None:
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InvalidInput(f"{field}: there is no permission set {names}", field=field)
