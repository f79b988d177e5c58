"""Accounts as the settings want them."""

from typing import Final

import structlog

from attune.identities.accounts import Accounts, Registration
from attune.identities.decide import registration_is_open
from attune.identities.passwords import Passwords
from attune.identities.tokens import Tokens
from attune.kernel.clock import Clock
from attune.kernel.errors import InvalidSettings
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings
from attune.store.database import Database

_SECRET_BYTES: Final = 32

_log = structlog.get_logger()


def accounts_from(settings: Settings, database: Database, clock: Clock, ids: Ids) -> Accounts:
    security = settings.security
    if security.jwt_secret is None:
        raise InvalidSettings("security.jwt_secret must be set.", field="security.jwt_secret")
    if len(security.jwt_secret.get_secret_value().encode()) < _SECRET_BYTES:
        _log.warning("security.jwt_secret is shorter than 32 bytes and may be guessed.")
    return Accounts(
        database=database,
        passwords=Passwords(),
        tokens=Tokens(security.jwt_secret, clock, ids),
        clock=clock,
        registration=Registration(
            registration_is_open(settings), tuple(security.default_permission_sets)
        ),
    )
