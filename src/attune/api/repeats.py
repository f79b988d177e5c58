"""Requests that are repeated under an idempotency key: answered with what the first one made, if the caller may know it.

A key is looked at before, so that a refused request makes nothing, and again afterwards, because somebody else may
have used it in between.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from attune.api.execution_access import readable_by
from attune.catalog.equality import same
from attune.catalog.refs import pack_part
from attune.identities.constraints import Target, execution_of
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition, either
from attune.kernel.errors import Conflict
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.queries import hidden_keys
from attune.store.database import Database

_FIELD: Final = "idempotency_key"


async def check_execution_keys(
    database: Database, rights: Rights, keys: Collection[str | None]
) -> None:
    """`Conflict` for a key that leads to an execution which is neither the caller's nor readable for him."""
    wanted = {key for key in keys if key is not None}
    if not wanted or rights.is_everything:
        return
    if await database.read(hidden_keys, wanted, _known_to(rights)):
        raise _refusal("an execution")


def of_others(requests: Iterable[Request], made: Iterable[Execution]) -> set[str | None]:
    """The keys under which somebody else's request was the first one."""
    return {
        one.idempotency_key
        for asked, one in zip(requests, made, strict=True)
        if (asked.executor, asked.parent) != (one.executor, one.parent)
    }


def check_events(
    rights: Rights, told: Sequence[NewEvent], found: Mapping[str, Event]
) -> dict[str, Event]:
    """The events by their keys, as the caller may see them.

    Who may not read events may still repeat himself: an event that says what he says tells him nothing new. What the
    rules made of it is not in that answer, as it was not in the first one. Any other is a `Conflict`.
    """
    by_key: defaultdict[str | None, list[NewEvent]] = defaultdict(list)
    for one in told:
        by_key[one.idempotency_key].append(one)
    seen: dict[str, Event] = {}
    for key, event in found.items():
        if _may_read(rights, event):
            seen[key] = event
        elif any(_says(one, event) for one in by_key[key]):
            seen[key] = msgspec.structs.replace(event, rules=None, processed_at=None)
        else:
            raise _refusal("an event")
    return seen


def _known_to(rights: Rights) -> Condition:
    """A program that runs again after a failure asks for its children again; it knew them before."""
    own = execution_of(rights.caller) if rights.is_execution else None
    children = [] if own is None else [Condition("x.parent = :asker", {"asker": own})]
    return either([readable_by(rights), *children])


def _may_read(rights: Rights, event: Event) -> bool:
    ref = event.trigger_ref
    return rights.allows("events", "read", Target(id=event.id, ref=ref, pack_ref=pack_part(ref)))


def _says(told: NewEvent, event: Event) -> bool:
    return (
        told.trigger_ref in (event.trigger_ref, str(event.trigger))
        and told.rule == event.rule
        and same(told.payload, event.payload)
        and same(told.config, event.config)
    )


def _refusal(what: str) -> Conflict:
    return Conflict(f"{_FIELD}: it was used for {what} that you may not see", field=_FIELD)
