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
