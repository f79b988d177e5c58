"""What people do with their account: register, log in, stay logged in, look at it and change it."""

from dataclasses import dataclass, field
from typing import Final

from pydantic import SecretStr

from attune.identities.assignments import grants_of, has_ended, held_by
from attune.identities.belief import Belief, LastSeen
from attune.identities.decide import (
    caller_of,
    check_own_account,
    effective_rights,
    execution_of,
)
from attune.identities.model import Caller, Credential, Identity, Profile, Session, TokenType
from attune.identities.passwords import Passwords
from attune.identities.steps import (
    NewIdentity,
    register,
    rename,
    replace_hash,
    with_id,
    with_login,
)
from attune.identities.tokens import Tokens
from attune.kernel.clock import Clock
from attune.kernel.errors import Conflict, Forbidden, NotFound, Unauthenticated
from attune.kernel.ids import IdentityId
from attune.store.database import Database, Tx

_BEARERS: Final = tuple(each for each in TokenType if each is not TokenType.REFRESH)


@dataclass(frozen=True)
class Registration:
    """Whether anyone may register, and what such an identity gets."""

    is_open: bool
    default_permission_sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Accounts:
    database: Database
    passwords: Passwords
    tokens: Tokens
    clock: Clock
    registration: Registration
    _seen: LastSeen = field(default_factory=LastSeen)

    async def register(self, login: str, password: SecretStr, display_name: str | None) -> Session:
        if not self.registration.is_open:
            raise Forbidden("Registration is closed; an administrator can add an identity.")
        hashed = await self.passwords.hash(password.get_secret_value())
        new = NewIdentity(login=login, display_name=display_name, password_hash=hashed)
        sets = self.registration.default_permission_sets
        return self._session(await self.database.run(register, new, sets, self.clock.now()))

    async def login(self, login: str, password: SecretStr) -> Session:
        """An unknown login and a wrong password cannot be told apart, by words or by time."""
        found = await self.database.read(with_login, login)
        kept = found.password_hash if found else None
        matches = await self.passwords.matches(password.get_secret_value(), kept)
        if found is None or kept is None or not matches:
            raise Unauthenticated("The login or the password is wrong.")
        if found.identity.frozen:
            raise Unauthenticated("This identity is frozen.")
        await self._renew_hash(found.identity.id, kept, password)
        return self._session(found.identity)

    async def refresh(self, refresh_token: str) -> Session:
        claims = self.tokens.read(refresh_token, TokenType.REFRESH)
        found = await self.database.read(with_id, claims.identity)
        if found is None or found.identity.frozen:
            raise Unauthenticated("The identity of this token is gone or frozen.")
        return self._session(found.identity)

    async def caller(self, token: str) -> Caller:
        """Who holds this token. What it may do is read from the database each time, so a change counts at once."""
        claims = self.tokens.read(token, *_BEARERS)
        held = await self.database.glance(held_by, claims.identity)
        self._seen.note(claims.identity, held)
        if held is None:
            raise Unauthenticated("The identity of this token is gone or frozen.")
        execution = execution_of(claims)
        if execution is not None and await self.database.glance(has_ended, execution):
            raise Unauthenticated("The execution of this token has ended.")
        return caller_of(claims, held.permission_set_refs, held.attributes)

    def believed(self, token: str) -> Belief | None:
        """Who holds this token, for a step that asks whether it is true. None for one who was not seen yet, and for an
        execution, which may have ended."""
        claims = self.tokens.read(token, *_BEARERS)
        held = self._seen.get(claims.identity)
        if held is None or claims.token_type is TokenType.EXECUTION:
            return None
        return Belief(caller_of(claims, held.permission_set_refs, held.attributes), held)

    async def profile(self, caller: Caller) -> Profile:
        return await self.database.read(_profile, caller)

    async def rename(self, caller: Caller, display_name: str | None) -> Profile:
        check_own_account(caller)
        await self.database.run(rename, caller.identity, display_name, self.clock.now())
        return await self.profile(caller)

    async def change_password(self, caller: Caller, current: SecretStr, new: SecretStr) -> None:
        check_own_account(caller)
        kept = (await self.database.read(_own, caller)).password_hash
        if not await self.passwords.matches(current.get_secret_value(), kept) or kept is None:
            raise Unauthenticated("The current password is wrong.")
        hashed = await self.passwords.hash(new.get_secret_value())
        if not await self._replace_hash(caller.identity, kept, hashed):
            raise Conflict("The password was changed by another request meanwhile.")

    async def _renew_hash(self, identity: IdentityId, kept: str, password: SecretStr) -> None:
        if self.passwords.is_outdated(kept):
            hashed = await self.passwords.hash(password.get_secret_value())
            await self._replace_hash(identity, kept, hashed)

    async def _replace_hash(self, identity: IdentityId, kept: str, hashed: str) -> bool:
        return await self.database.run(replace_hash, identity, kept, hashed, self.clock.now())

    def _session(self, identity: Identity) -> Session:
        return Session(identity, self.tokens.pair(identity.id, identity.login))


async def _own(tx: Tx, caller: Caller) -> Credential:
    found = await with_id(tx, caller.identity)
    if found is None:
        raise NotFound("This identity is gone.", id=caller.identity)
    return found


async def _profile(tx: Tx, caller: Caller) -> Profile:
    own = await _own(tx, caller)
    return Profile(
        identity=own.identity,
        has_password=own.password_hash is not None,
        permission_set_refs=caller.permission_set_refs,
        effective=effective_rights(await grants_of(tx, caller.permission_set_refs)),
    )
