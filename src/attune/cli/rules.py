"""`attune rule`."""

from collections.abc import Callable
from typing import Annotated

import typer

from attune.cli.completion import rule_refs
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.rendering import Column, pretty
from attune.cli.session import Session
from attune.client.definitions import Rule, RuleSummary

Ref = Annotated[str, typer.Argument(help="The rule.", autocompletion=rule_refs)]

_COLUMNS: list[Column[RuleSummary]] = [
    Column("REF", lambda each: each.ref),
    Column("ENABLED", lambda each: each.enabled),
    Column("TRIGGER", lambda each: each.trigger_ref),
    Column("ACTION", lambda each: each.action_ref),
    Column("UPDATED", lambda each: each.updated),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "rule")
    command(commands, "list", "attune rule list")(list_rules)
    command(commands, "show", "attune rule show demo.on_large_order")(show)
    command(commands, "enable", "attune rule enable demo.on_large_order")(enable)
    command(commands, "disable", "attune rule disable demo.on_large_order")(disable)


def list_rules(session: Session) -> None:
    """List rules by their ref."""
    session.show_all(session.client.rules.iterate(), _COLUMNS, empty="There are no rules yet.")


def show(session: Session, ref: Ref) -> None:
    """Show a rule: its trigger, its conditions, its action."""
    found = _of(session, ref, session.client.rules.get)
    parts = {
        "Trigger's parameters": found.trigger_params,
        "Conditions": found.conditions,
        "Action's parameters": found.action_params,
    }
    sections = [(title, pretty(value)) for title, value in parts.items() if value]
    session.show_one(found, _fields(found), *sections)


def enable(session: Session, ref: Ref) -> None:
    """Switch a rule on."""
    found = _of(session, ref, session.client.rules.enable)
    session.tell(f"Rule {found.ref} is enabled.", found)


def disable(session: Session, ref: Ref) -> None:
    """Switch a rule off; what it asked for before goes on."""
    found = _of(session, ref, session.client.rules.disable)
    session.tell(f"Rule {found.ref} is disabled.", found)


def _of(session: Session, ref: str, operation: Callable[[str], Rule]) -> Rule:
    with near_names(ref, session.client.rules.iterate):
        return operation(ref)


def _fields(rule: Rule) -> list[tuple[str, object]]:
    return [
        ("Rule", rule.ref),
        ("Label", rule.label),
        ("Description", rule.description),
        ("Enabled", rule.enabled),
        ("Trigger", rule.trigger_ref),
        ("Action", rule.action_ref),
        ("Strict", rule.strict),
        ("Permission sets", ", ".join(rule.permission_set_refs or []) or None),
        ("Updated", rule.updated),
    ]
