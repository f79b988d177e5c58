"""Who calls the API in these tests, and what it told other processes."""

from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from attune.catalog.model import Pack, PermissionSet, Rule
from attune.catalog.rows import PERMISSION_SETS, add, next_id
from attune.identities.accounts import Accounts
from attune.identities.assignments import assign
from attune.identities.model import TokenType
from attune.identities.steps import NewIdentity
from attune.identities.steps import add as add_identity
from attune.kernel.ids import IdentityId, PackId, PermissionSetId
from attune.kernel.messages import MessageType
from attune.store.database import Database, Tx
from tests.contract.api.asgi import Client
from tests.contract.identities.rows import NOW

HOUR = 3600


@dataclass
class Told:
    """Keeps what would be announced, in place of a broker."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def rule(self, tx: Tx, kind: MessageType, rule: Rule) -> None:
        tx.on_commit(lambda: self.found.append((kind, rule.ref)))

    def pack(self, tx: Tx, kind: MessageType, pack: Pack) -> None:
        tx.on_commit(lambda: self.found.append((kind, pack.ref)))

    def pack_loaded(self, kind: MessageType, pack: PackId, ref: str) -> None:
        self.found.append((kind, ref))


@dataclass(frozen=True)
class World:
    app: FastAPI
    accounts: Accounts
    told: Told

    @property
    def database(self) -> Database:
        return self.accounts.database

    @property
    def nobody(self) -> Client:
        return Client(self.app)

    async def identity(self, login: str, *sets: str, **attributes: Any) -> IdentityId:
        async def make(tx: Tx) -> IdentityId:
            made = await add_identity(tx, NewIdentity(login=login, attributes=attributes), NOW)
            await assign(tx, made.id, sets, NOW)
            return made.id

        return await self.database.run(make)

    async def client(self, login: str, *sets: str, **attributes: Any) -> Client:
        """One who holds these permission sets."""
        identity = await self.identity(login, *sets, **attributes)
        tokens = self.accounts.tokens
        return Client(self.app, tokens.issue(identity, login, TokenType.ACCESS, HOUR))

    async def execution(self, identity: IdentityId, *sets: str) -> Client:
        """The program of an execution that acts for an identity with these sets."""
        metadata = {"execution_id": 7, "permission_set_refs": list(sets)}
        token = self.accounts.tokens.issue(
            identity, "execution:7", TokenType.EXECUTION, HOUR, scope="execution", metadata=metadata
        )
        return Client(self.app, token)

    async def permission_set(self, ref: str, *grants: dict[str, Any]) -> None:
        async def make(tx: Tx) -> None:
            row = PermissionSet(
                id=PermissionSetId(await next_id(tx, PERMISSION_SETS)),
                ref=ref,
                pack=None,
                pack_ref=None,
                grants=list(grants),
                is_adhoc=True,
                created=NOW,
                updated=NOW,
            )
            await add(tx, PERMISSION_SETS, row)

        await self.database.run(make)
