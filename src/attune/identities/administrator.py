"""The first administrator: named by the settings, or else whoever registers first."""

from datetime import datetime

import structlog

from attune.identities.accounts import Accounts
from attune.identities.assignments import (
    administrator_exists,
    administrator_remains,
    assign,
    core_is_loaded,
    link_waiting,
    take_first_place,
    unknown_sets,
)
from attune.identities.decide import given_administrator
from attune.identities.model import ADMINISTRATOR
from attune.identities.steps import NewIdentity, add
from attune.kernel.errors import DuplicateRow, InvalidSettings
from attune.kernel.settings import SecuritySettings
from attune.store.database import Tx

_log = structlog.get_logger()


class FirstAdministrator:
    """Starts after the catalog is loaded and before anyone can register. Any number of processes may at once."""

    name = "first administrator"

    def __init__(self, accounts: Accounts, security: SecuritySettings) -> None:
        self._accounts = accounts
        self._security = security

    async def start(self) -> None:
        given = given_administrator(self._security)
        await self._accounts.database.run(link_waiting)
        await self._check_default_sets()
        if await self._accounts.database.read(administrator_exists):
            return
        if given is not None:
            await self._make(*given)
        elif not self._accounts.registration.is_open:
            _log.warning(
                "There is no administrator, and registration is closed:"
                " set security.admin_login and security.admin_password."
            )

    async def stop(self) -> None:
        pass

    async def _make(self, login: str, password: str) -> None:
        accounts = self._accounts
        hashed = await accounts.passwords.hash(password)
        new = NewIdentity(login=login, password_hash=hashed)
        try:
            made = await accounts.database.run(make_administrator, new, accounts.clock.now())
        except DuplicateRow:
            _log.warning(
                "security.admin_login is taken by one who is no administrator.", login=login
            )
            return
        if made:
            _log.info("Made the first administrator.", login=login)

    async def _check_default_sets(self) -> None:
        """A set that nobody has yet may still come while the catalog is empty; after that it is a mistake."""
        database = self._accounts.database
        refs = self._accounts.registration.default_permission_sets
        unknown = await database.read(unknown_sets, refs)
        if not unknown:
            return
        if await database.read(core_is_loaded):
            raise InvalidSettings(
                f"security.default_permission_sets names unknown sets: {', '.join(unknown)}.",
                field="security.default_permission_sets",
            )
        _log.warning("Default permission sets are not known yet.", permission_sets=unknown)


async def make_administrator(tx: Tx, new: NewIdentity, now: datetime) -> bool:
    """False when there is one already. Also the way back in when the last administrator is gone."""
    first = await take_first_place(tx, new.login, now)
    if not first and await administrator_remains(tx):
        return False
    made = await add(tx, new, now)
    await assign(tx, made.id, [ADMINISTRATOR], now)
    return True
