"""`attune enforcement`."""

from itertools import islice
from typing import Annotated

import typer

from attune.cli.completion import rule_refs
from attune.cli.frame import command, group
from attune.cli.rendering import Column, pretty
from attune.cli.session import Session
from attune.client.models import Enforcement, EnforcementStatus, EnforcementSummary
from attune.client.requests import EnforcementFilters

Rule = Annotated[str | None, typer.Option(help="Only of this rule.", autocompletion=rule_refs)]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")]

_COLUMNS: list[Column[EnforcementSummary]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("RULE", lambda each: each.rule_ref),
    Column("TRIGGER", lambda each: each.trigger_ref),
    Column("EVENT", lambda each: each.event, right=True),
    Column("STATUS", lambda each: each.status),
    Column("CREATED", lambda each: each.created),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "enforcement")
    command(commands, "list", "attune enforcement list --rule demo.on_large_order")(
        list_enforcements
    )
    command(commands, "show", "attune enforcement show 9")(show)


def list_enforcements(
    session: Session,
    rule: Rule = None,
    event: Annotated[int | None, typer.Option(help="Only of this event.", metavar="ID")] = None,
    status: Annotated[EnforcementStatus | None, typer.Option(help="Only those.")] = None,
    limit: Limit = 20,
) -> None:
    """List enforcements, newest first."""
    filters: EnforcementFilters = {"page_size": min(limit, 100)}
    if rule is not None:
        filters["rule_ref"] = rule
    if event is not None:
        filters["event"] = event
    if status is not None:
        filters["status"] = status
    found = islice(session.client.enforcements.iterate(**filters), limit)
    words = "No enforcements are like that." if len(filters) > 1 else "There are none yet."
    session.show_all(found, _COLUMNS, empty=words)


def show(session: Session, id_: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Show an enforcement, what it was made of, and the executions that came of it."""
    found = session.client.enforcements.get(id_)
    executions = session.client.executions.of_enforcement(id_) if session.for_people else []
    parts = {"Parameters": found.config, "Conditions": found.conditions, "Payload": found.payload}
    sections = [(title, pretty(value)) for title, value in parts.items() if value]
    words = [f"{each.id} {each.action_ref} {each.status}" for each in executions]
    session.show_one(found, [*_fields(found), ("Executions", "\n".join(words) or None)], *sections)


def _fields(enforcement: Enforcement) -> list[tuple[str, object]]:
    return [
        ("Enforcement", enforcement.id),
        ("Rule", enforcement.rule_ref),
        ("Trigger", enforcement.trigger_ref),
        ("Event", enforcement.event),
        ("Status", enforcement.status),
        ("Reason", enforcement.reason),
        ("Warnings", "\n".join(map(str, enforcement.warnings or [])) or None),
        ("Created", enforcement.created),
        ("Resolved", enforcement.resolved_at),
    ]
