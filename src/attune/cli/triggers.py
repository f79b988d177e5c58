"""`attune trigger`."""

from typing import Annotated

import typer

from attune.cli.completion import trigger_refs
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.rendering import Column, table
from attune.cli.schemas import PARAMETER_COLUMNS, parameters_of
from attune.cli.session import Session
from attune.client.definitions import Trigger, TriggerSummary

Ref = Annotated[str, typer.Argument(help="The trigger.", autocompletion=trigger_refs)]
Off = Annotated[bool, typer.Option("--off", help="Take the address away.")]
New = Annotated[bool, typer.Option("--new", help="Replace the address by a new one.")]

_COLUMNS: list[Column[TriggerSummary]] = [
    Column("REF", lambda each: each.ref),
    Column("ENABLED", lambda each: each.enabled),
    Column("WEBHOOK", lambda each: each.webhook_enabled),
    Column("DESCRIPTION", lambda each: each.description or each.label),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "trigger")
    command(commands, "list", "attune trigger list -o json")(list_triggers)
    command(commands, "show", "attune trigger show core.intervaltimer")(show)
    command(
        commands,
        "webhook",
        "attune trigger webhook demo.order_placed",
        "attune trigger webhook demo.order_placed --off",
    )(webhook)


def list_triggers(session: Session) -> None:
    """List triggers by their ref."""
    found = session.client.triggers.iterate()
    session.show_all(found, _COLUMNS, empty="There are no triggers that you may see.")


def show(session: Session, ref: Ref) -> None:
    """Show a trigger, what configures it and what its events carry."""
    triggers = session.client.triggers
    with near_names(ref, triggers.iterate):
        found = triggers.get(ref)
    taken, given = parameters_of(found.param_schema), parameters_of(found.out_schema)
    inputs = [("Parameters", table(taken, PARAMETER_COLUMNS, session.now))] if taken else []
    outputs = [("Payload", table(given, PARAMETER_COLUMNS, session.now))] if given else []
    session.show_one(found, _fields(found), *inputs, *outputs)


def webhook(session: Session, ref: Ref, off: Off = False, new: New = False) -> None:
    """Give a trigger an address that the world outside can call, and show it."""
    triggers = session.client.triggers
    with near_names(ref, triggers.iterate):
        found = triggers.get(ref)
    if off:
        session.tell(f"{ref} has no webhook now.", triggers.disable_webhook(ref))
        return
    if not found.webhook_enabled:
        found = triggers.enable_webhook(ref)
    elif new:
        found = triggers.regenerate_webhook(ref)
    session.tell(f"{session.client.server.url.rstrip('/')}{found.webhook_url}", found)


def _fields(trigger: Trigger) -> list[tuple[str, object]]:
    return [
        ("Trigger", trigger.ref),
        ("Label", trigger.label),
        ("Description", trigger.description),
        ("Pack", trigger.pack_ref),
        ("Enabled", trigger.enabled),
        ("Sensor", trigger.sensor_ref),
        ("Webhook", trigger.webhook_url or trigger.webhook_key),
        ("Updated", trigger.updated),
    ]
