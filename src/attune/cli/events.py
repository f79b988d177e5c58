"""`attune event`."""

from itertools import islice
from typing import Annotated

import typer

from attune.cli.completion import trigger_refs
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.parameters import json_object
from attune.cli.rendering import Column, pretty, table
from attune.cli.session import Session
from attune.client.models import ConsideredRule, Event, EventSummary
from attune.client.requests import EventFilters, EventOptions

Ref = Annotated[str, typer.Argument(help="The trigger.", autocompletion=trigger_refs)]
Payload = Annotated[
    str, typer.Option(metavar="JSON|@FILE", help="What happened, as a JSON object.")
]
Trigger = Annotated[
    str | None, typer.Option(help="Only of this trigger.", autocompletion=trigger_refs)
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")]
Key = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Tell once, however often this command is repeated."),
]

_COLUMNS: list[Column[EventSummary]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("TRIGGER", lambda each: each.trigger_ref),
    Column("SOURCE", lambda each: each.source_ref),
    Column("RULE", lambda each: each.rule_ref),
    Column("CREATED", lambda each: each.created),
]
_RULE_COLUMNS: list[Column[ConsideredRule]] = [
    Column("RULE", lambda each: each.rule_ref),
    Column("MATCHED", lambda each: each.matched),
    Column("REASON", lambda each: each.reason),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "event")
    command(
        commands,
        "emit",
        "attune event emit demo.order_placed --payload '{\"amount\": 120}'",
        "attune event emit demo.order_placed --payload @order.json",
    )(emit)
    command(commands, "list", "attune event list --trigger demo.order_placed")(list_events)
    command(commands, "show", "attune event show 7")(show)


def emit(session: Session, ref: Ref, payload: Payload = "{}", idempotency_key: Key = None) -> None:
    """Tell of an event; every rule of its trigger is held against it."""
    options: EventOptions = {} if idempotency_key is None else {"idempotency_key": idempotency_key}
    what = json_object(payload, "--payload")
    with near_names(ref, session.client.triggers.iterate):
        event = session.client.events.emit(ref, what, **options)
    session.tell(f"Event {event.id} of {event.trigger_ref} is told.", event)


def list_events(session: Session, trigger: Trigger = None, limit: Limit = 20) -> None:
    """List events, newest first."""
    filters: EventFilters = {"page_size": min(limit, 100)}
    if trigger is not None:
        filters["trigger_ref"] = trigger
    found = islice(session.client.events.iterate(**filters), limit)
    words = "No events are like that." if trigger else "There are no events yet."
    session.show_all(found, _COLUMNS, empty=words)


def show(session: Session, id_: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Show an event, which rules were considered for it, and why each did or did not match."""
    found = session.client.events.get(id_)
    rules = table(found.rules, _RULE_COLUMNS, session.now) if found.rules else _without_rules(found)
    session.show_one(
        found, _fields(found), ("Payload", pretty(found.payload)), ("Rules considered", rules)
    )


def _without_rules(event: Event) -> str:
    if event.rules is None:
        return "Not considered yet."
    return f"No rule listens to {event.trigger_ref}."


def _fields(event: Event) -> list[tuple[str, object]]:
    return [
        ("Event", event.id),
        ("Trigger", event.trigger_ref),
        ("Source", event.source_ref),
        ("For rule", event.rule_ref),
        ("Created", event.created),
    ]
