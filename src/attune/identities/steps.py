"""Identities in the database: made, found, changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from attune.identities.assignments import assign, take_first_place
from attune.identities.decide import sets_of_registered
from attune.identities.model import Credential, Identity
from attune.kernel.errors import DuplicateRow
from attune.kernel.ids import IdentityId
from attune.store.database import Tx
from attune.store.schema import identity

_COLUMNS = "id, login, display_name, attributes, frozen, created, updated"
_BY_LOGIN = f"SELECT {_COLUMNS}, password_hash FROM identity WHERE login = :login"  # noqa: S608
_BY_ID = f"SELECT {_COLUMNS}, password_hash FROM identity WHERE id = :id"  # noqa: S608


class _Row(Identity, frozen=True, kw_only=True):
    password_hash: str | None

    def credential(self) -> Credential:
        values = {name: getattr(self, name) for name in Identity.__struct_fields__}
        return Credential(Identity(**values), self.password_hash)


class NewIdentity(msgspec.Struct, frozen=True, kw_only=True):
    login: str
    display_name: str | None = None
    password_hash: str | None = None
    attributes: dict[str, Any] = {}


async def register(
    tx: Tx, new: NewIdentity, default_sets: Sequence[str], now: datetime
) -> Identity:
    """The first one ever is made administrator. Of two that come at once, one is first."""
    first = await take_first_place(tx, new.login, now)
    made = await add(tx, new, now)
    await assign(tx, made.id, sets_of_registered(first=first, defaults=default_sets), now)
    return made


async def add(tx: Tx, new: NewIdentity, now: datetime) -> Identity:
    [id_] = await tx.next_ids(identity)
    row = _Row(id=IdentityId(id_), created=now, updated=now, **msgspec.structs.asdict(new))
    if await tx.insert(identity, [row], skip_existing=True) == 0:
        raise DuplicateRow(f"The login '{new.login}' is taken.", login=new.login)
    return row.credential().identity


async def with_login(tx: Tx, login: str) -> Credential | None:
    if "\0" in login:  # PostgreSQL knows no such text and would complain
        return None
    row = await tx.first(_Row, _BY_LOGIN, login=login)
    return row.credential() if row else None


async def with_id(tx: Tx, id_: IdentityId) -> Credential | None:
    row = await tx.first(_Row, _BY_ID, id=id_)
    return row.credential() if row else None


async def rename(tx: Tx, id_: IdentityId, display_name: str | None, now: datetime) -> None:
    await tx.execute(
        "UPDATE identity SET display_name = :name, updated = :now WHERE id = :id",
        name=display_name,
        now=now,
        id=id_,
    )


async def replace_hash(tx: Tx, id_: IdentityId, old: str, new: str, now: datetime) -> bool:
    """False when the password was changed meanwhile: the later change must not be undone."""
    touched = await tx.execute(
        "UPDATE identity SET password_hash = :new, updated = :now"
        " WHERE id = :id AND password_hash = :old",
        new=new,
        now=now,
        id=id_,
        old=old,
    )
    return touched == 1
