"""`attune queue`: who waits for what, and whether it goes on."""

import sys
from itertools import islice
from typing import Annotated, Any

import typer

from attune.cli.completion import action_refs
from attune.cli.failures import REFUSED, near_names
from attune.cli.frame import command, group
from attune.cli.parameters import json_object
from attune.cli.queue_tables import ENTRY_COLUMNS, QUEUE_COLUMNS, group_text
from attune.cli.queue_verify import add_verify
from attune.cli.rendering import table
from attune.cli.session import Session
from attune.cli.watching import EVERY, Every, Watch, Watching
from attune.client.queue_models import Queue, QueueEntry, QueueState
from attune.client.requests import EntryFilters, QueueFilters

Ref = Annotated[str, typer.Argument(help="The action.", autocompletion=action_refs)]
GroupValues = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="JSON", help='Only the queue of that group: \'{"host": "a"}\'.'
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, first in line first.")]
Priorities = Annotated[
    str, typer.Argument(metavar="WORD", help="critical, high, normal, low or background.")
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "queue")
    command(commands, "list", "attune queue list", "attune queue list --waiting --watch")(
        list_queues
    )
    command(
        commands,
        "show",
        "attune queue show demo.report",
        'attune queue show demo.report --group \'{"customer": "a"}\' --watch',
    )(show)
    command(commands, "pause", "attune queue pause demo.report")(pause)
    command(commands, "resume", "attune queue resume demo.report")(resume)
    command(commands, "clear", "attune queue clear demo.report --yes")(clear)
    command(commands, "reprioritize", "attune queue reprioritize 42 high")(reprioritize)
    add_verify(commands)


def list_queues(
    session: Session,
    action: Annotated[str | None, typer.Option(help="Of this action, or `pack.*`.")] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Where something waits.")] = False,
    watch: Watch = False,
    every: Every = EVERY,
) -> None:
    """List queues: how many wait, how many have a slot, and what the first in line waits for."""
    filters: QueueFilters = {}
    if action is not None:
        filters["action_ref"] = action
    if waiting:
        filters["waiting"] = True

    def look() -> list[Queue]:
        return list(session.client.queues.iterate(**filters))

    empty = "No queues are like that." if filters else "There are no queues yet."
    if watch:
        Watching(session, QUEUE_COLUMNS, lambda each: each.id, empty=empty).run(look, every)
    else:
        session.show_all(look(), QUEUE_COLUMNS, empty=empty)


def show(
    session: Session,
    ref: Ref,
    group: GroupValues = None,
    state: Annotated[
        str | None, typer.Option(help="queued, ready or handed; by default the first two.")
    ] = None,
    limit: Limit = 50,
    watch: Watch = False,
    every: Every = EVERY,
) -> None:
    """Show who waits for an action, in the order in which they will go, and why."""
    values = _values(group)
    filters: EntryFilters = {"page_size": min(limit, 100)}
    if values is not None:
        filters["group"] = values
    if state is not None:
        filters["state"] = state

    def look() -> list[QueueEntry]:
        with near_names(ref, session.client.actions.iterate):
            return list(islice(session.client.queues.iterate_entries(ref, **filters), limit))

    empty = f"Nothing waits for {ref}." if state is None else f"Nothing of {ref} is {state}."
    if watch:
        Watching(session, ENTRY_COLUMNS, lambda each: each.execution, empty=empty).run(look, every)
        return
    found = look()
    if session.for_people:
        _show_queues(session, ref, values)
    session.show_all(found, ENTRY_COLUMNS, empty=empty)


def pause(session: Session, ref: Ref, group: GroupValues = None) -> None:
    """Let nobody of a queue go; what runs goes on."""
    with near_names(ref, session.client.actions.iterate):
        found = session.client.queues.pause(ref, group=_values(group))
    session.tell(f"{_named(found)} is paused; {_waiting(found)}.", found)


def resume(session: Session, ref: Ref, group: GroupValues = None) -> None:
    """Let those of a paused queue go on."""
    with near_names(ref, session.client.actions.iterate):
        found = session.client.queues.resume(ref, group=_values(group))
    session.tell(f"{_named(found)} goes on; {_waiting(found)}.", found)


def clear(
    session: Session,
    ref: Ref,
    group: GroupValues = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Cancel all that wait in a queue; what workers have goes on."""
    values = _values(group)
    if not yes and is_terminal():
        _confirm(session, ref, values)
    with near_names(ref, session.client.actions.iterate):
        found = session.client.queues.clear(ref, group=values)
    session.tell(f"{_named(found)} is cleared: {found.cancelled} cancelled.", found)


def reprioritize(
    session: Session,
    id_: Annotated[int, typer.Argument(help="An execution that waits.", metavar="ID")],
    word: Priorities,
) -> None:
    """Move an execution that waits to another band of its queue."""
    found = session.client.queues.reprioritize(id_, word)
    session.tell(f"Execution {found.id} has the priority {found.priority}.", found)


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def _confirm(session: Session, ref: str, values: dict[str, Any] | None) -> None:
    filters: EntryFilters = {"page_size": 1}
    if values is not None:
        filters["group"] = values
    with near_names(ref, session.client.actions.iterate):
        total = session.client.queues.entries(ref, **filters).pagination.total_items
    typer.echo(f"Cancel the {total} that wait for {ref}? [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        session.note("Nothing was cancelled.")
        raise typer.Exit(REFUSED)


def _show_queues(session: Session, ref: str, values: dict[str, Any] | None) -> None:
    found = list(session.client.queues.iterate(action_ref=ref))
    shown = [each for each in found if values is None or (each.group or {}) == values]
    if shown:
        session.console.print(table(shown, QUEUE_COLUMNS, session.now))
        session.console.print()


def _values(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json_object(text, "--group")


def _named(found: QueueState) -> str:
    group = group_text(found.group)
    return f"The queue of {found.action_ref}" + (f" {group}" if group else "")


def _waiting(found: QueueState) -> str:
    return f"{found.queue_length} {'waits' if found.queue_length == 1 else 'wait'}"
