"""Recording events. From the commit on, an event is not lost and will be answered."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from attune.catalog import rows
from attune.catalog.model import Rule, Trigger
from attune.catalog.versions import VersionedCache, current_version
from attune.kernel.errors import InvalidInput, NotFound
from attune.kernel.ids import EventId
from attune.kernel.messages import EventCreated, MessageType
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.outbox import Outbox
from attune.store import schema
from attune.store.database import Answer, Tx

_COLUMNS = ", ".join(Event.__struct_fields__)
# The names in these statements are those of our own structs.
_BY_ID: Final = f"SELECT {_COLUMNS} FROM event WHERE id = :id"  # noqa: S608
_BY_KEYS: Final = f"SELECT {_COLUMNS} FROM event WHERE idempotency_key = ANY(:keys::text[])"  # noqa: S608
_UNPROCESSED: Final = f"""
    SELECT {_COLUMNS} FROM event WHERE id = ANY(:ids::bigint[]) AND processed_at IS NULL
     ORDER BY id FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_OPEN_IDS: Final = """
    SELECT id FROM event WHERE processed_at IS NULL AND id > :after ORDER BY id LIMIT :limit
"""


class TriggerBook:
    """Triggers, kept for as long as the catalog stays as it is."""

    def __init__(self) -> None:
        self._known: VersionedCache[str, Trigger] = VersionedCache()

    async def get(self, tx: Tx, version: int, ref: str) -> Trigger:
        known = self._known.get(version, ref)
        if known is None:
            known = await rows.get(tx, rows.TRIGGERS, ref)
            self._known.put(version, ref, known)
        return known


async def record(
    tx: Tx, triggers: TriggerBook, outbox: Outbox, new: Sequence[NewEvent], now: datetime
) -> list[Event]:
    """One event for each, in their order; one whose idempotency key is known is the first with that key."""
    version = await current_version(tx)
    ids = await tx.next_ids(schema.event, len(new))
    events = [
        await _event(tx, await triggers.get(tx, version, one.trigger_ref), EventId(i), one, now)
        for i, one in zip(ids, new, strict=True)
    ]
    keys = [one.idempotency_key for one in events if one.idempotency_key]
    first = await _insert(tx, events, keys)
    found = [first[e.idempotency_key] if e.idempotency_key else e for e in events]
    made = set(ids)
    for one in {event.id: event for event in found}.values():
        if one.id in made:
            item = EventCreated(
                event_id=one.id, trigger_id=one.trigger, trigger_ref=one.trigger_ref
            )
            outbox.put(MessageType.EVENT_CREATED, item)
    return found


async def _insert(tx: Tx, events: Sequence[Event], keys: Sequence[str]) -> dict[str, Event]:
    """The first event with each of the keys."""
    if not keys:
        await tx.insert_later(schema.event, events)
        return {}
    await tx.insert(schema.event, events, skip_existing=True)
    return await by_keys(tx, keys)


async def by_keys(tx: Tx, keys: Iterable[str]) -> dict[str, Event]:
    """The events that were told under these idempotency keys."""
    found = await tx.all(Event, _BY_KEYS, keys=sorted(keys))
    return {one.idempotency_key: one for one in found if one.idempotency_key}


async def get_event(tx: Tx, event_id: int) -> Event:
    found = await tx.first(Event, _BY_ID, id=event_id)
    if found is None:
        raise NotFound(f"There is no event {event_id}.", id=event_id)
    return found


async def lock_unprocessed(tx: Tx, ids: Sequence[EventId]) -> Answer[Event]:
    """Those that nobody has processed and nobody else is processing at this moment; told with the next statement."""
    return await tx.answer_later(Event, _UNPROCESSED, ids=ids)


async def open_events(tx: Tx, after: int, limit: int) -> list[EventId]:
    """The oldest that wait to be processed."""
    return await tx.all(EventId, _OPEN_IDS, after=after, limit=limit)


async def _event(
    tx: Tx, trigger: Trigger, event_id: EventId, new: NewEvent, now: datetime
) -> Event:
    rule = await _bound_rule(tx, new, trigger) if new.rule is not None else None
    return Event(
        id=event_id,
        trigger=trigger.id,
        trigger_ref=trigger.ref,
        source=new.source,
        source_ref=new.source_ref,
        rule=rule.id if rule else None,
        rule_ref=rule.ref if rule else None,
        idempotency_key=new.idempotency_key,
        config=new.config,
        payload=new.payload,
        created=now,
        updated=now,
    )


async def _bound_rule(tx: Tx, new: NewEvent, trigger: Trigger) -> Rule:
    rule = await rows.find(tx, rows.RULES, int(new.rule or 0))
    if rule is None:
        raise NotFound(f"There is no rule {new.rule}.", id=new.rule)
    if rule.trigger != trigger.id:
        raise InvalidInput(
            f"trigger_instance_id: the rule {rule.ref} has another trigger, {rule.trigger_ref}",
            field="trigger_instance_id",
        )
    return rule
