"""`attune execution`: what ran, runs and waits."""

from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer

from attune.cli.failures import REFUSED
from attune.cli.frame import command, group
from attune.cli.live import Output
from attune.cli.rendering import Column, pretty
from attune.cli.results import result_panel, took
from attune.cli.session import Session
from attune.client.errors import AttuneApiError
from attune.client.logs import STREAMS
from attune.client.models import Execution, ExecutionSummary
from attune.client.requests import ExecutionFilters
from attune.kernel.statuses import ExecutionStatus

Id = Annotated[int, typer.Argument(help="The execution's id.", metavar="ID")]
Ids = Annotated[list[int], typer.Argument(help="Ids of executions.", metavar="ID...")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")]


class StreamName(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


Stream = Annotated[
    StreamName | None, typer.Option(help="Which of the two; both where it is left out.")
]

_COLUMNS: list[Column[ExecutionSummary]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("ACTION", lambda each: each.action_ref),
    Column("STATUS", lambda each: each.status),
    Column("RULE", lambda each: each.rule_ref),
    Column("TOOK", took, right=True),
    Column("CREATED", lambda each: each.created),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "execution")
    command(commands, "list", "attune execution list --status failed --action 'core.*' -n 50")(
        list_executions
    )
    command(commands, "show", "attune execution show 42")(show)
    command(commands, "logs", "attune execution logs 42 --follow --stream stderr")(logs)
    command(commands, "cancel", "attune execution cancel 42 43")(cancel)


def list_executions(
    session: Session,
    status: Annotated[ExecutionStatus | None, typer.Option(help="Only those.")] = None,
    action: Annotated[str | None, typer.Option(help="Of this action, or `pack.*`.")] = None,
    rule: Annotated[str | None, typer.Option(help="That this rule asked for.")] = None,
    limit: Limit = 20,
) -> None:
    """List executions, newest first."""
    filters: ExecutionFilters = {"page_size": min(limit, 100)}
    if status is not None:
        filters["status"] = status
    if action is not None:
        filters["action_ref"] = action
    if rule is not None:
        filters["rule_ref"] = rule
    found = islice(session.client.executions.iterate(**filters), limit)
    words = "No executions are like that." if len(filters) > 1 else "There are no executions yet."
    session.show_all(found, _COLUMNS, empty=words)


def show(session: Session, id_: Id) -> None:
    """Show an execution with its parameters and result."""
    found = session.client.executions.get(id_)
    parameters = [("Parameters", pretty(found.config))] if found.config else []
    result = [("Result", result_panel(found, with_output=True))] if found.result else []
    session.show_one(found, _fields(found), *parameters, *result)


def logs(
    session: Session,
    id_: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until it has ended.")] = False,
    stream: Stream = None,
) -> None:
    """Show what an execution wrote."""
    wanted = STREAMS if stream is None else (stream.value,)
    if not session.for_people:
        session.dump({each: _whole(session, id_, each, follow=follow) for each in wanted})
    elif follow and stream is None:
        output = Output(session.client, id_, {each: each for each in STREAMS})
        session.client.executions.get(id_)
        output.start()
        output.join()
    else:
        for each in wanted:
            _copy(session, id_, each, follow=follow)


def cancel(session: Session, ids: Ids) -> None:
    """Cancel executions. One that cannot be cancelled does not keep the others from it."""
    done: list[Execution] = []
    refused = False
    for id_ in ids:
        try:
            done.append(session.client.executions.cancel(id_))
        except AttuneApiError as error:
            refused = True
            session.note(f"attune: {id_}: {error.message}")
            continue
        if session.for_people:
            session.tell(f"Execution {id_} is {done[-1].status}.", done[-1])
    if not session.for_people:
        session.dump(done)
    if refused:
        raise typer.Exit(REFUSED)


def _copy(session: Session, id_: int, stream: str, *, follow: bool) -> None:
    for text in session.client.executions.logs(id_, stream=stream, follow=follow):
        typer.echo(text, nl=False, err=stream == "stderr")


def _whole(session: Session, id_: int, stream: str, *, follow: bool) -> str:
    return "".join(session.client.executions.logs(id_, stream=stream, follow=follow))


def _fields(execution: Execution) -> list[tuple[str, object]]:
    return [
        ("Execution", execution.id),
        ("Action", execution.action_ref),
        ("Status", execution.status),
        ("Waits for", execution.reason),
        ("Priority", execution.priority),
        ("Attempt", execution.attempt),
        ("Rule", execution.rule_ref),
        ("Trigger", execution.trigger_ref),
        ("Enforcement", execution.enforcement),
        ("Parent", execution.parent),
        ("Worker", execution.worker),
        ("Created", execution.created),
        ("Started", execution.started_at),
        ("Updated", execution.updated),
        ("Took", took(execution)),
    ]
