"""/actions/{ref}/queue: who waits for an action, and whether its queue goes on."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query

from attune.api.access import ACTIONS, Resource, permitted
from attune.api.action_queue_models import (
    ClearedQueue,
    GroupRequest,
    GroupText,
    QueueEntry,
    QueueState,
    group_of,
)
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import JsonObject, Key
from attune.api.pages import Page, PageOf, Wanted, page_of
from attune.api.parts import ApiParts
from attune.catalog import rows
from attune.catalog.model import Action
from attune.identities.rights import Rights
from attune.pipeline.queues.model import State
from attune.pipeline.queues.places import lanes_of, places
from attune.store.database import Tx

Change = Callable[[str, str | None, str], Awaitable[int]]

# An action, as far as its queue is concerned.
QUEUES: Final[Resource[Action]] = Resource(
    "queues", rows.ACTIONS, ACTIONS.columns, ACTIONS.readable_by
)


def action_queue_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/actions", "queues")
    _add_looking(routes, parts)
    _add_switches(routes, parts)
    _add_clearing(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    @routes.get("/{ref}/queue", summary="List who waits", responses=refusals(403, 404))
    async def show(
        ref: Key,
        rights: RightsOf,
        wanted: PageOf,
        state: Annotated[
            State | None, Query(description="Only those; by default queued and ready.")
        ] = None,
        group: GroupText = None,
    ) -> Page[QueueEntry]:
        return await parts.database.read(_page, rights, ref, state, group_of(group), wanted)


def _add_switches(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post("/{ref}/queue/pause", summary="Let nobody go", responses=refusals(403, 404))
    async def pause(
        ref: Key, rights: RightsOf, body: GroupRequest | None = None, group: GroupText = None
    ) -> Answer[QueueState]:
        asked = _group(body, group)
        action_ref, _done = await _changed(parts, rights, ref, asked, parts.flow.pause)
        return Answer(data=await parts.database.read(_state, action_ref, asked))

    @routes.post("/{ref}/queue/resume", summary="Let them go on", responses=refusals(403, 404))
    async def resume(
        ref: Key, rights: RightsOf, body: GroupRequest | None = None, group: GroupText = None
    ) -> Answer[QueueState]:
        asked = _group(body, group)
        action_ref, _done = await _changed(parts, rights, ref, asked, parts.flow.resume)
        return Answer(data=await parts.database.read(_state, action_ref, asked))


def _add_clearing(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post("/{ref}/queue/clear", summary="Cancel all that wait", responses=refusals(403, 404))
    async def clear(
        ref: Key, rights: RightsOf, body: GroupRequest | None = None, group: GroupText = None
    ) -> Answer[ClearedQueue]:
        asked = _group(body, group)
        action_ref, ended = await _changed(parts, rights, ref, asked, parts.flow.clear)
        state = await parts.database.read(_state, action_ref, asked)
        return Answer(data=ClearedQueue(**state.model_dump(), cancelled=ended))


def _group(body: GroupRequest | None, text: str | None) -> JsonObject | None:
    """From the body, else from the query."""
    given = body.group if body else None
    return given if given is not None else group_of(text)


async def _changed(
    parts: ApiParts, rights: Rights, ref: str, group: JsonObject | None, change: Change
) -> tuple[str, int]:
    """The action's ref, and how many the change touched."""
    action_ref, keys = await parts.database.read(_chosen, rights, ref, group)
    return action_ref, sum([await change(action_ref, key, rights.caller.login) for key in keys])


async def _chosen(
    tx: Tx, rights: Rights, ref: str, group: JsonObject | None
) -> tuple[str, list[str | None]]:
    """The action, and the keys of the group's queues; null stands for all of them."""
    action = await permitted(tx, QUEUES, rights, ref, "update")
    if group is None:
        return action.ref, [None]
    return action.ref, [lane.group_key for lane in await lanes_of(tx, action.ref, group)]


async def _state(tx: Tx, action_ref: str, group: JsonObject | None) -> QueueState:
    return QueueState.of(action_ref, group, await lanes_of(tx, action_ref, group))


async def _page(
    tx: Tx,
    rights: Rights,
    ref: str,
    state: State | None,
    group: JsonObject | None,
    wanted: Wanted,
) -> Page[QueueEntry]:
    action = await permitted(tx, QUEUES, rights, ref, "read")
    found = await places(tx, action.ref, state, group, wanted.page_size, wanted.offset)
    return page_of(wanted, map(QueueEntry.of, found.items), total=found.total)
