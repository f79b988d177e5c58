"""`attune worker list`, `show`, `cordon`, `uncordon` and `drain`."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec
import typer
from rich.console import RenderableType

from attune.cli.completion import worker_names
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.live import status_line
from attune.cli.rendering import console_for, table
from attune.cli.session import Session
from attune.cli.worker_tables import (
    EXECUTION_COLUMNS,
    HISTORY_COLUMNS,
    SET_ASIDE_COLUMNS,
    WORKER_COLUMNS,
    load_words,
    worker_fields,
)
from attune.client.errors import NotFinished
from attune.client.models import Page
from attune.client.requests import WorkerFilters
from attune.client.worker_models import Worker, WorkerExecution, WorkerHistoryEntry

# Neither a refusal nor a misuse: a script that stops the worker next must tell it from both.
NOT_DRAINED: Final = 3
_INTERRUPTED: Final = 130
_MOST_EXECUTIONS: Final = 100

Ref = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, or its id.", autocompletion=worker_names)
]
Reason = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Why; it is shown and kept in its history.")
]
Shown = Annotated[int, typer.Option("--history", min=0, help="How many rows of its history.")]
DrainTimeout = Annotated[
    float | None,
    typer.Option(min=0, metavar="SECONDS", help="How long to wait; without it, to the end."),
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Whether to wait for its last one.")]


class _Name(NamedTuple):
    ref: str


def add_to(app: typer.Typer) -> None:
    commands = group(app, "worker", "worker list")
    command(commands, "list", "attune worker list", "attune worker list --state offline")(
        list_workers
    )
    command(commands, "show", "attune worker show w1", "attune worker show w1 --history 50")(show)
    command(commands, "cordon", 'attune worker cordon w1 --reason "disk full"')(cordon)
    command(commands, "uncordon", "attune worker uncordon w1")(uncordon)
    command(
        commands,
        "drain",
        'attune worker drain w1 --reason "kernel upgrade" --timeout 600',
        "attune worker drain w1 --no-wait",
    )(drain)


def list_workers(
    session: Session,
    state: Annotated[
        str | None, typer.Option(help="active, busy, cordoned, offline or error.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="active, inactive, busy or error.")] = None,
    role: Annotated[str | None, typer.Option(help="action or sensor.")] = None,
    cordoned: Annotated[
        bool | None,
        typer.Option("--cordoned/--not-cordoned", show_default=False, help="Only those."),
    ] = None,
) -> None:
    """List workers: how each is, its load, what it can run."""
    filters: WorkerFilters = {}
    if state is not None:
        filters["health_state"] = state
    if status is not None:
        filters["status"] = status
    if role is not None:
        filters["role"] = role
    if cordoned is not None:
        filters["cordoned"] = cordoned
    empty = "No workers are like that." if filters else "No worker has come yet."
    session.show_all(session.client.workers.iterate(**filters), WORKER_COLUMNS, empty=empty)


def show(session: Session, ref: Ref, history: Shown = 10) -> None:
    """Show all about a worker: what it can run, what it has to do, what became of it."""
    workers = session.client.workers
    with near_names(ref, lambda: _names(session)):
        worker = workers.get(ref)
    held = workers.executions(worker.id, page_size=_MOST_EXECUTIONS)
    past = list(islice(workers.iterate_history(worker.id), history))
    if session.for_people:
        session.show_one(worker, worker_fields(worker), *_sections(session, worker, held, past))
    else:
        session.dump(msgspec.structs.asdict(worker) | {"executions": held.items, "history": past})


def cordon(session: Session, ref: Ref, reason: Reason = None) -> None:
    """Give a worker nothing more to do; what it has goes on."""
    with near_names(ref, lambda: _names(session)):
        found = session.client.workers.cordon(ref, reason)
    session.tell(f"Worker {found.name} is cordoned; it has {load_words(found.load)}.", found)


def uncordon(session: Session, ref: Ref, reason: Reason = None) -> None:
    """Give a worker work again."""
    with near_names(ref, lambda: _names(session)):
        found = session.client.workers.uncordon(ref, reason)
    session.tell(f"Worker {found.name} gets work again; it is {found.health_state}.", found)


def drain(
    session: Session,
    ref: Ref,
    reason: Reason = None,
    timeout: DrainTimeout = None,
    wait: Wait = True,
) -> None:
    """Cordon a worker and wait until it has nothing left to do, so that it can be stopped.

    Exit code 0 if it has nothing left, 3 if it still has after the time, or was uncordoned meanwhile.
    """
    with near_names(ref, lambda: _names(session)):
        found = session.client.workers.drain(ref, reason)
    if not wait:
        session.tell(f"Worker {found.name} is cordoned; it has {load_words(found.load)}.", found)
        return
    drained = _waited_for(session, found, timeout)
    session.tell(f"Worker {drained.name} is drained: cordoned, with nothing left to do.", drained)


def _waited_for(session: Session, worker: Worker, timeout: float | None) -> Worker:
    """Progress goes to standard error: in place on a terminal, a line for each change elsewhere."""
    with status_line(console_for(errors=True), worker.name, shown=True) as line:

        def tell(seen: Worker) -> None:
            words = f"Worker {seen.name} has {load_words(seen.load)}."
            if line is None:
                session.note(words)
            else:
                line.update(words)

        try:
            return session.client.workers.wait_drained(worker.id, timeout=timeout, on_change=tell)
        except NotFinished as error:
            session.note(f"attune: {error.message}")
            raise typer.Exit(NOT_DRAINED) from error
        except KeyboardInterrupt:
            session.note(
                f"Worker {worker.name} stays cordoned; `attune worker uncordon {worker.name}`"
                " gives it work again."
            )
            raise typer.Exit(_INTERRUPTED) from None


def _sections(
    session: Session, worker: Worker, held: Page[WorkerExecution], past: list[WorkerHistoryEntry]
) -> list[tuple[str, RenderableType]]:
    now = session.now
    found: list[tuple[str, RenderableType]] = []
    if held.items:
        title = "Has to do now"
        if held.pagination.has_next:
            title += f", the first {len(held)} of {held.pagination.total_items}"
        found.append((title, table(held, EXECUTION_COLUMNS, now)))
    if worker.set_aside:
        found.append(("Set aside for", table(worker.set_aside, SET_ASIDE_COLUMNS, now)))
    if past:
        found.append(("History", table(past, HISTORY_COLUMNS, now)))
    return found


def _names(session: Session) -> Iterator[_Name]:
    return (_Name(each.name) for each in session.client.workers.iterate())
