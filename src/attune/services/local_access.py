"""How commands on this machine get into `attune up` without logging in.

Whoever can read the data directory owns the installation anyway: the database and the secret that signs
every token lie there. So a token in a file beside them, readable by the same user alone, gives nothing away.
It is for the embedded installation only.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

import msgspec
import structlog

from attune.identities.assignments import assign
from attune.identities.model import ADMINISTRATOR, LOCAL_OPERATOR, Identity, TokenType
from attune.identities.steps import NewIdentity, add, with_login
from attune.identities.tokens import Tokens
from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.ids import IdentityId
from attune.services.local_file import LocalServer, local_file, write_private
from attune.store.database import Database, Tx

_DISPLAY_NAME: Final = "Local operator"
_TOKEN_LIFE: Final = timedelta(days=30)
_RENEWAL: Final = timedelta(days=1)

_log = structlog.get_logger()


class LocalAccess(Duty[DutyConfig]):
    """Starts last, when `address` is known. The operator holds its rights only while this runs.

    It has no password, so nobody can log in as it, and it neither takes nor fills the place of the first
    administrator: whoever registers first still is.
    """

    name: ClassVar[str] = "local access"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tokens: Tokens,
        data_dir: Path,
        address: Callable[[], str],
    ) -> None:
        super().__init__(DutyConfig(interval=_RENEWAL.total_seconds()), clock)
        self._database = database
        self._tokens = tokens
        self._file = local_file(data_dir)
        self._address = address
        self._operator: Identity | None = None
        self._written: datetime | None = None

    async def start(self) -> asyncio.Task[None]:
        self._operator = await self._database.run(_operator, self.clock.now())
        if self._operator is None:
            _log.warning(
                "The login of the local operator is somebody's account.", login=LOCAL_OPERATOR
            )
        await self.run_once()
        return await super().start()

    async def stop(self) -> None:
        await super().stop()
        operator, self._operator, self._written = self._operator, None, None
        if operator is not None:
            self._file.unlink(missing_ok=True)
            await self._database.run(_dismiss, operator.id)

    async def run_once(self) -> None:
        """A new token long before the last one ends."""
        operator, now = self._operator, self.clock.now()
        if operator is None or (self._written is not None and now - self._written < _RENEWAL):
            return
        life = int(_TOKEN_LIFE.total_seconds())
        token = self._tokens.issue(operator.id, operator.login, TokenType.ACCESS, life)
        write_private(self._file, msgspec.json.encode(LocalServer(self._address(), token)))
        self._written = now


async def _operator(tx: Tx, now: datetime) -> Identity | None:
    """None where somebody registered that login: his account must not become an administrator's."""
    found = await with_login(tx, LOCAL_OPERATOR)
    if found is not None and (found.password_hash is not None or found.identity.frozen):
        return None
    new = NewIdentity(login=LOCAL_OPERATOR, display_name=_DISPLAY_NAME)
    identity = found.identity if found else await add(tx, new, now)
    await assign(tx, identity.id, [ADMINISTRATOR], now)
    return identity


async def _dismiss(tx: Tx, operator: IdentityId) -> None:
    """Otherwise it would look as if there were an administrator already, at the next start."""
    await tx.execute("DELETE FROM permission_assignment WHERE identity = :id", id=operator)
