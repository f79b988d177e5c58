"""The API in front of a whole control plane: what is asked for over HTTP is run to its end."""

import dataclasses
from typing import Any

from pydantic import SecretStr

from attune.api.app import create_app
from attune.api.execution_feed import ExecutionFeed, feed_queue
from attune.identities.accounts import Accounts, Registration
from attune.identities.model import TokenType
from attune.identities.passwords import Passwords
from attune.identities.tokens import Tokens
from attune.kernel.ids import IdentityId
from attune.kernel.settings import Settings
from tests.contract.api.asgi import Client
from tests.contract.api.parts import api_parts
from tests.contract.api.streaming import Stream
from tests.contract.api.world import HOUR, Told
from tests.contract.api.world import World as Callers
from tests.contract.pipeline.world import World, eventually

EXECUTIONS = "/api/v1/executions"
ENDED = {"completed", "failed", "timeout", "cancelled", "abandoned"}


class Plant(World):
    """`through` as in `attune up`. Without worker and executor, and not through, everything stays requested."""

    def __init__(self, settings: Settings, *, through: bool = True) -> None:
        super().__init__(settings, through=through)
        self.feed = ExecutionFeed(
            self.database, self.bus, self.clock, feed_queue(self.ids.token("api.", 4))
        )
        self.accounts = Accounts(
            database=self.database,
            passwords=Passwords(time_cost=1, memory_kib=64),
            tokens=Tokens(SecretStr("a secret of the tests"), self.clock, self.ids),
            clock=self.clock,
            registration=Registration(is_open=True),
        )
        parts = api_parts(self.accounts, self.bus, settings.data_dir / "packs", Told())
        self.app = create_app(dataclasses.replace(parts, flow=self.flow, feed=self.feed))
        self.callers = Callers(self.app, self.accounts, Told())

    async def client(self, login: str, *sets: str) -> Client:
        return await self.callers.client(login, *sets)

    def running_as(self, execution: int, identity: int, *sets: str) -> Client:
        """The program of an execution."""
        token = self.accounts.tokens.issue(
            IdentityId(identity),
            f"execution:{execution}",
            TokenType.EXECUTION,
            HOUR,
            scope="execution",
            metadata={"execution_id": execution, "permission_set_refs": list(sets)},
        )
        return Client(self.app, token)

    def open(self, client: Client, path: str, **query: Any) -> Stream:
        return Stream(self.app, client.token, path, query)

    async def inline(self, client: Client, name: str, script: str, **fields: Any) -> str:
        """An action of one's own, in bash."""
        ref = f"core.{name}"
        body = {"ref": ref, "pack_ref": "core", "label": name, "runtime_ref": "core.shell"}
        made = await client.post("/api/v1/actions", {**body, "entrypoint": script, **fields})
        assert made.status == 201, made.raw
        return ref

    async def order(self, client: Client, action_ref: str, **fields: Any) -> Any:
        answer = await client.post(f"{EXECUTIONS}/execute", {"action_ref": action_ref, **fields})
        assert answer.status == 201, answer.raw
        return answer.data

    async def in_status(self, client: Client, execution: int, *statuses: str) -> Any:
        async def there() -> Any:
            found = (await client.get(f"{EXECUTIONS}/{execution}")).data
            return found if found["status"] in statuses else None

        return await eventually(there)

    async def finished(self, client: Client, execution: int) -> Any:
        return await self.in_status(client, execution, *ENDED)
