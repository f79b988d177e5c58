"""`client.packs`, `actions`, `triggers` and `rules`: what users define."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack

from attune.client.archives import archive_of
from attune.client.calls import Upload, delete, post, put, upload
from attune.client.collection import Catalog
from attune.client.definitions import (
    Action,
    ActionSummary,
    Pack,
    PackInstallation,
    PackSummary,
    Rule,
    RuleSummary,
    Trigger,
    TriggerSummary,
)
from attune.client.models import Done
from attune.client.operations import Operation, W
from attune.client.requests import (
    ActionChanges,
    NewAction,
    NewRule,
    NewTrigger,
    RuleChanges,
    TriggerChanges,
)


class Packs(Catalog[W, PackSummary, Pack]):
    noun: ClassVar[str] = "packs"
    summary: ClassVar[type[Any]] = PackSummary
    detail: ClassVar[type[Any]] = Pack

    @Operation
    async def upload(
        self, path: str | Path, *, force: bool = False, skip_tests: bool = False
    ) -> PackInstallation:
        """Send a folder with a pack.yaml, or a .tar.gz of one. `force` updates a pack that is there."""
        name, content = archive_of(Path(path))
        flags = {"force": force, "skip_tests": skip_tests}
        values = {field: str(value).lower() for field, value in flags.items()}
        form = Upload("pack", name, content, values)
        return await self._session.run(upload(self._path("upload"), PackInstallation, form))

    @Operation
    async def delete(self, ref: str | int) -> Done:
        """With its actions, triggers and rules; executions and events stay."""
        return await self._session.run(delete(self._path(ref), Done))


class Actions(Catalog[W, ActionSummary, Action]):
    noun: ClassVar[str] = "actions"
    summary: ClassVar[type[Any]] = ActionSummary
    detail: ClassVar[type[Any]] = Action

    @Operation
    async def create(self, **fields: Unpack[NewAction]) -> Action:
        return await self._session.run(post(self._path(), Action, fields))

    @Operation
    async def update(self, ref: str | int, **changes: Unpack[ActionChanges]) -> Action:
        """What is not named stays as it is."""
        return await self._session.run(put(self._path(ref), Action, changes))

    @Operation
    async def delete(self, ref: str | int) -> Done:
        return await self._session.run(delete(self._path(ref), Done))


class Triggers(Catalog[W, TriggerSummary, Trigger]):
    noun: ClassVar[str] = "triggers"
    summary: ClassVar[type[Any]] = TriggerSummary
    detail: ClassVar[type[Any]] = Trigger

    @Operation
    async def create(self, **fields: Unpack[NewTrigger]) -> Trigger:
        return await self._session.run(post(self._path(), Trigger, fields))

    @Operation
    async def update(self, ref: str | int, **changes: Unpack[TriggerChanges]) -> Trigger:
        """What is not named stays as it is."""
        return await self._session.run(put(self._path(ref), Trigger, _with_patch(changes)))

    @Operation
    async def delete(self, ref: str | int) -> Done:
        return await self._session.run(delete(self._path(ref), Done))

    @Operation
    async def enable(self, ref: str | int) -> Trigger:
        return await self._session.run(post(self._path(ref, "enable"), Trigger))

    @Operation
    async def disable(self, ref: str | int) -> Trigger:
        return await self._session.run(post(self._path(ref, "disable"), Trigger))

    @Operation
    async def enable_webhook(
        self, ref: str | int, config: Mapping[str, Any] | None = None
    ) -> Trigger:
        """Give it an address to call; `config` asks for a signature, bounds the rate, names who may call."""
        body = {} if config is None else {"webhook_config": config}
        return await self._session.run(post(self._path(ref, "webhooks", "enable"), Trigger, body))

    @Operation
    async def disable_webhook(self, ref: str | int) -> Trigger:
        """The address it had is gone for good."""
        return await self._session.run(post(self._path(ref, "webhooks", "disable"), Trigger))

    @Operation
    async def regenerate_webhook(self, ref: str | int) -> Trigger:
        """A new address in place of the old one."""
        return await self._session.run(post(self._path(ref, "webhooks", "regenerate"), Trigger))


class Rules(Catalog[W, RuleSummary, Rule]):
    noun: ClassVar[str] = "rules"
    summary: ClassVar[type[Any]] = RuleSummary
    detail: ClassVar[type[Any]] = Rule

    @Operation
    async def create(self, **fields: Unpack[NewRule]) -> Rule:
        return await self._session.run(post(self._path(), Rule, fields))

    @Operation
    async def update(self, ref: str | int, **changes: Unpack[RuleChanges]) -> Rule:
        """What is not named stays as it is."""
        return await self._session.run(put(self._path(ref), Rule, changes))

    @Operation
    async def delete(self, ref: str | int) -> Done:
        return await self._session.run(delete(self._path(ref), Done))

    @Operation
    async def enable(self, ref: str | int) -> Rule:
        return await self._session.run(post(self._path(ref, "enable"), Rule))

    @Operation
    async def disable(self, ref: str | int) -> Rule:
        return await self._session.run(post(self._path(ref, "disable"), Rule))


def _with_patch(changes: Mapping[str, Any]) -> dict[str, Any]:
    """A trigger's description is changed by an object that tells clearing from leaving alone."""
    body = dict(changes)
    if "description" in body:
        text = body["description"]
        body["description"] = {"op": "clear"} if text is None else {"op": "set", "value": text}
    return body
