"""The control plane with a shop: what the tests of the pipeline define and ask for."""

from pathlib import Path
from typing import Any

from attune.catalog.loading.model import Mode
from attune.catalog.model import Policy, Rule
from attune.catalog.steps.packs import NewPack, create_pack
from attune.catalog.steps.policies import (
    NewPolicy,
    PolicyChanges,
    create_policy,
    delete_policy,
    update_policy,
)
from attune.catalog.steps.rules import NewRule, create_rule
from attune.catalog.steps.triggers import NewTrigger, create_trigger
from attune.pipeline.enforcements.model import Enforcement
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.events.steps import get_event
from attune.store.values import Json
from harness.control_plane import ControlPlane, eventually

__all__ = ["World", "eventually"]


class World(ControlPlane):
    async def install(self, folder: Path) -> None:
        await self.installer.install_folder(folder, Mode.NEW)

    async def rule(self, name: str = "on_order", **fields: Any) -> Rule:
        """A rule of the pack `shop`, on shop.order, that echoes; the pack and its trigger are made with the first."""
        now = self.clock.now()
        if await self.value(int, "SELECT 1 FROM pack WHERE ref = 'shop'") is None:
            pack = NewPack(ref="shop", label="Shop", version="1.0.0", config={"greeting": "hello"})
            await self.database.run(create_pack, pack, now)
            trigger = NewTrigger(ref="shop.order", pack_ref="shop", label="Order")
            await self.database.run(create_trigger, trigger, now)
        wanted: dict[str, Any] = {"action_ref": "core.echo", **fields}
        new = NewRule(
            ref=f"shop.{name}", pack_ref="shop", label=name, trigger_ref="shop.order", **wanted
        )
        return await self.database.run(create_rule, new, now)

    async def emit(self, payload: Any = None, **fields: Any) -> Event:
        new = NewEvent(trigger_ref="shop.order", payload=payload or {}, **fields)
        [event] = await self.flow.record_events([new])
        return event

    async def event(self, event_id: int) -> Event:
        """Once the rules have answered it."""

        async def processed() -> Event | None:
            found = await self.database.read(get_event, event_id)
            return found if found.processed_at is not None else None

        return await eventually(processed)

    async def enforcements(self) -> list[Enforcement]:
        columns = ", ".join(Enforcement.__struct_fields__)
        return await self.values(Enforcement, f"SELECT {columns} FROM enforcement ORDER BY id")

    async def limit(self, action_ref: str, most: int, *, told: bool = True) -> None:
        """A policy that lets so many executions of the action run at once. Not told, the next pass finds it."""
        now = self.clock.now()
        await self.execute("DELETE FROM policy WHERE scope_ref = :ref", ref=action_ref)
        await self.execute(
            """INSERT INTO policy (id, ref, name, enabled, priority, scope_type, scope_ref,
                      concurrency_limit, concurrency_method, concurrency_parameters, quotas, windows,
                      blackouts, tags, is_adhoc, created, updated)
               VALUES (:id, :policy, :policy, true, 0, 'action', :ref, :most, 'enqueue', :none, :none, :none,
                       :none, :none, true, :now, :now)""",
            id=await self.value(int, "SELECT coalesce(max(id), 0) + 1 FROM policy"),
            policy=f"{action_ref}_limit",
            ref=action_ref,
            most=most,
            none=Json([]),
            now=now,
        )
        await self.execute("UPDATE catalog_version SET version = version + 1")
        if told:
            await self.flow.arrange()

    async def policy(
        self, ref: str = "a.policy", *, over: str | None = "a.one", **fields: Any
    ) -> Policy:
        """A policy over an action, a pack or, where `over` is null, everything; what waits follows it at once."""
        new = NewPolicy(ref=ref, scope_type=_scope(over), scope_ref=over, **fields)
        made = await self.database.run(create_policy, new, self.clock.now())
        await self.flow.arrange()
        return made

    async def change(self, ref: str = "a.policy", **fields: Any) -> Policy:
        if "over" in fields:
            over = fields.pop("over")
            fields |= {"scope_type": _scope(over), "scope_ref": over}
        changes = PolicyChanges(**fields)
        changed = await self.database.run(update_policy, ref, changes, self.clock.now())
        await self.flow.arrange()
        return changed

    async def drop(self, ref: str = "a.policy") -> None:
        await self.database.run(delete_policy, ref)
        await self.flow.arrange()

    async def first_execution(self) -> int:
        """The id of the first that there is, once there is one."""

        async def found() -> int | None:
            first: int | None = await self.value(int, "SELECT min(id) FROM execution")
            return first

        return await eventually(found)


def _scope(over: str | None) -> str:
    if over is None:
        return "global"
    return "action" if "." in over else "pack"
