"""Actions as executions need them: with their definition kept and their schema compiled.

`version` is the catalog's, read in the same transaction.
"""

from dataclasses import dataclass
from datetime import datetime

from attune.catalog import rows
from attune.catalog.definitions import definition_of
from attune.catalog.model import Action
from attune.catalog.schemas import ParameterSchema, compile_schema
from attune.catalog.versions import VersionedCache
from attune.kernel.ids import ActionDefinitionId
from attune.store.database import Tx


@dataclass(frozen=True, slots=True)
class KnownAction:
    action: Action
    definition: ActionDefinitionId
    schema: ParameterSchema


class ActionBook:
    """Kept for as long as the catalog stays as it is: a warm process asks the database for its version only."""

    def __init__(self) -> None:
        self._known: VersionedCache[str, KnownAction] = VersionedCache()

    async def find(
        self, tx: Tx, version: int, refs: set[str], now: datetime
    ) -> dict[str, KnownAction]:
        """The actions by these refs (or ids, written as text); those that there are not are left out."""
        found: dict[str, KnownAction] = {}
        for ref in sorted(refs):
            known = self._known.get(version, ref) or await self._load(tx, version, ref, now)
            if known is not None:
                found[ref] = known
        return found

    async def _load(self, tx: Tx, version: int, ref: str, now: datetime) -> KnownAction | None:
        action = await rows.find(tx, rows.ACTIONS, ref)
        if action is None:
            return None
        definition = await definition_of(tx, action, now)
        schema = compile_schema(action.param_schema, "param_schema")
        known = KnownAction(action, definition, schema)
        # Not before the commit: a definition that was rolled back has no row.
        tx.on_commit(lambda: self._known.put(version, ref, known))
        return known
