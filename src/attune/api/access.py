"""What a caller may see and do of what users define.

What may not be read is not there: absent from lists, 404 by ref. What may not be done is a 403, unless the
thing is one that the caller may not even see although he holds such a right for others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from msgspec import UNSET

from attune.api.pages import Wanted
from attune.catalog import rows
from attune.catalog.model import Action, Pack, Row, Rule, Runtime, Trigger
from attune.identities.constraints import Target
from attune.identities.rights import Rights, refusal
from attune.identities.row_conditions import ALWAYS, Columns, Condition, either
from attune.kernel.errors import NotFound
from attune.store.database import Tx

R = TypeVar("R", bound=Row)

_PACK_COLUMNS: Final = Columns(ref="ref", pack_ref="ref", owner="owner_identity")
_MEMBER_COLUMNS: Final = Columns(ref="ref", pack_ref="pack_ref")
_RULE_COLUMNS: Final = Columns(ref="ref", pack_ref="pack_ref", owner="owner_identity")
_OF_STANDARD_PACKS: Final = Condition("pack IN (SELECT p.id FROM pack p WHERE p.is_standard)", {})


@dataclass(frozen=True, eq=False)
class Resource(Generic[R]):
    """A kind of rows under the word that grants have for it."""

    name: str
    kind: rows.Kind[R]
    columns: Columns
    readable_by: Callable[[Rights], Condition]

    def allowed(self, rights: Rights, action: str) -> Condition:
        return rights.condition(self.name, action, self.columns)


def _visible_packs(rights: Rights) -> Condition:
    """A pack with an owner is his own, unless a grant names it."""
    if rights.is_everything:
        return ALWAYS
    unowned = rights.condition("packs", "read", _PACK_COLUMNS)
    found = [
        Condition("is_standard", {}),
        Condition(f"(owner_identity IS NULL AND {unowned.sql})", unowned.values),
        rights.named_condition("packs", "read", _PACK_COLUMNS),
    ]
    if not rights.is_execution:
        found.append(Condition("owner_identity = :self", {"self": rights.caller.identity}))
    return either(found)


def _members(name: str, kind: rows.Kind[R], columns: Columns = _MEMBER_COLUMNS) -> Resource[R]:
    """What is in a standard pack is everybody's to read; the rest needs a grant."""

    def readable_by(rights: Rights) -> Condition:
        return either([_OF_STANDARD_PACKS, rights.condition(name, "read", columns)])

    return Resource(name, kind, columns, readable_by)


PACKS: Final[Resource[Pack]] = Resource("packs", rows.PACKS, _PACK_COLUMNS, _visible_packs)
ACTIONS: Final[Resource[Action]] = _members("actions", rows.ACTIONS)
TRIGGERS: Final[Resource[Trigger]] = _members("triggers", rows.TRIGGERS)
RUNTIMES: Final[Resource[Runtime]] = _members("runtimes", rows.RUNTIMES)
RULES: Final[Resource[Rule]] = _members("rules", rows.RULES, _RULE_COLUMNS)


def target_of(row: Row) -> Target:
    pack_ref = row.ref if isinstance(row, Pack) else getattr(row, "pack_ref", None)
    owner = getattr(row, "owner_identity", UNSET)
    return Target(id=row.id, ref=row.ref, pack_ref=pack_ref, owner=owner)


async def readable_page(
    tx: Tx, resource: Resource[R], rights: Rights, wanted: Wanted, *conditions: Condition
) -> rows.Page[R]:
    """Those that the caller may read and for which all conditions hold, by ref."""
    parts = [resource.readable_by(rights), *conditions]
    where = " AND ".join(part.sql for part in parts)
    values: dict[str, Any] = {name: v for part in parts for name, v in part.values.items()}
    return await rows.page(tx, resource.kind, wanted.page, wanted.page_size, where, **values)


async def readable(tx: Tx, resource: Resource[R], rights: Rights, key: str | int) -> R:
    """The row, or `NotFound` for one that is not there or not to be seen."""
    condition = resource.readable_by(rights)
    return await rows.get(tx, resource.kind, key, condition.sql, **condition.values)


async def permitted(
    tx: Tx, resource: Resource[R], rights: Rights, key: str | int, *actions: str
) -> R:
    """The row, once it is clear that the caller may do one of the actions to it."""
    able = [action for action in actions if rights.may_ever(resource.name, action)]
    if not able:
        raise refusal(resource.name, actions[0], str(key))
    row = await rows.get(tx, resource.kind, key)
    allowed = any(rights.allows(resource.name, action, target_of(row)) for action in able)
    if allowed and (resource is not PACKS or await _is_readable(tx, resource, rights, row)):
        return row
    if await _is_readable(tx, resource, rights, row):
        raise refusal(resource.name, actions[0], row.ref)
    raise NotFound(f"There is no {resource.kind.noun} '{key}'.", ref=str(key))


async def _is_readable(tx: Tx, resource: Resource[R], rights: Rights, row: R) -> bool:
    condition = resource.readable_by(rights)
    found = await rows.find(tx, resource.kind, row.id, condition.sql, **condition.values)
    return found is not None
