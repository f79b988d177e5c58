"""Finding events again."""

from typing import Final

import msgspec

from attune.identities.row_conditions import ALWAYS, Condition
from attune.kernel.ids import EventId, TriggerId
from attune.pipeline.events.model import Event, EventSummary
from attune.pipeline.listing import Listed, Window, all_of, equals, newest, ref_like
from attune.pipeline.listing import total as total_of
from attune.store.database import Tx

_SHOWN = ", ".join(name for name in EventSummary.__struct_fields__ if name != "has_payload")
EVENTS: Final = Listed("event", EventSummary, f"{_SHOWN}, payload <> '{{}}' AS has_payload")

# The names in these statements are those of our own structs.
_BY_ID: Final = f"SELECT {', '.join(Event.__struct_fields__)} FROM event x WHERE x.id = :id"  # noqa: S608
_REF: Final = "SELECT ref FROM trigger WHERE id = :id"


class EventFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What is null is not asked for. `source` is an id, or the word of `source_ref`."""

    trigger: TriggerId | None = None
    trigger_ref: str | None = None
    rule_ref: str | None = None
    source: int | str | None = None


async def list_events(
    tx: Tx, filters: EventFilters, readable: Condition, window: Window
) -> list[EventSummary]:
    return await newest(tx, EVENTS, await _where(tx, filters, readable), window)


async def count_events(tx: Tx, filters: EventFilters, readable: Condition) -> int:
    return await total_of(tx, EVENTS, await _where(tx, filters, readable))


async def find_event(tx: Tx, event_id: EventId, readable: Condition) -> Event | None:
    sql = f"{_BY_ID} AND {readable.sql}"
    return await tx.first(Event, sql, id=event_id, **readable.values)


async def _where(tx: Tx, filters: EventFilters, readable: Condition) -> Condition:
    column = "source" if isinstance(filters.source, int) else "source_ref"
    return all_of(
        [
            readable,
            await _trigger(tx, filters.trigger),
            ref_like("trigger_ref", filters.trigger_ref),
            ref_like("rule_ref", filters.rule_ref),
            equals(column, "source", filters.source),
        ]
    )


async def _trigger(tx: Tx, trigger: TriggerId | None) -> Condition:
    """Its ref is indexed and its id is not; one that is gone is found by its id alone."""
    if trigger is None:
        return ALWAYS
    ref = await tx.first(str, _REF, id=trigger)
    return all_of([equals("trigger", "trigger", trigger), equals("trigger_ref", "its_ref", ref)])
