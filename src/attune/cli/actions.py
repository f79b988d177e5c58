"""`attune action`."""

from typing import Annotated

import typer

from attune.cli.completion import action_refs, pack_refs
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.rendering import Column, table
from attune.cli.retry_words import limits_in_words, loss_in_words, retries_in_words
from attune.cli.schemas import PARAMETER_COLUMNS, parameters_of
from attune.cli.session import Session
from attune.client.definitions import Action, ActionSummary

Ref = Annotated[str, typer.Argument(help="The action.", autocompletion=action_refs)]
Pack = Annotated[str | None, typer.Option(help="Only of this pack.", autocompletion=pack_refs)]

_COLUMNS: list[Column[ActionSummary]] = [
    Column("REF", lambda each: each.ref),
    Column("RUNTIME", lambda each: "workflow" if each.workflow_def else each.runtime_ref),
    Column("DESCRIPTION", lambda each: each.description or each.label),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "action")
    command(commands, "list", "attune action list --pack core")(list_actions)
    command(commands, "show", "attune action show core.http_request")(show)


def list_actions(session: Session, pack: Pack = None) -> None:
    """List actions by their ref."""
    found = (each for each in session.client.actions.iterate() if pack in (None, each.pack_ref))
    session.show_all(found, _COLUMNS, empty="There are no actions that you may see.")


def show(session: Session, ref: Ref) -> None:
    """Show an action with its parameters."""
    actions = session.client.actions
    with near_names(ref, actions.iterate):
        found = actions.get(ref)
    taken, given = parameters_of(found.param_schema), parameters_of(found.out_schema)
    inputs = [("Parameters", table(taken, PARAMETER_COLUMNS, session.now))] if taken else []
    outputs = [("Data", table(given, PARAMETER_COLUMNS, session.now))] if given else []
    session.show_one(found, _fields(found), *inputs, *outputs)


def _fields(action: Action) -> list[tuple[str, object]]:
    return [
        ("Action", action.ref),
        ("Label", action.label),
        ("Description", action.description),
        ("Pack", action.pack_ref),
        ("Runtime", action.runtime_ref),
        ("Entrypoint", action.entrypoint),
        ("Time limit", f"{action.timeout_seconds:g} s" if action.timeout_seconds else None),
        ("Retries", retries_in_words(action.max_retries, action.retry)),
        ("If its worker is lost", loss_in_words(action.on_worker_lost)),
        ("Limits", limits_in_words(action.limits)),
        ("Process", "shared by executions, one after the other" if action.reuse else None),
        ("Updated", action.updated),
    ]
