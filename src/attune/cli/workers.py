"""`attune worker list`."""

import typer

from attune.cli.frame import command, group
from attune.cli.rendering import Column
from attune.cli.session import Session
from attune.client.worker_models import Worker


def _load(worker: Worker) -> str:
    most = worker.load.max_concurrent_executions
    return f"{worker.load.running}" if most is None else f"{worker.load.running}/{most}"


_COLUMNS: list[Column[Worker]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("NAME", lambda each: each.name),
    Column("ROLE", lambda each: each.worker_role),
    Column("STATE", lambda each: each.health_state or each.status),
    Column("LOAD", _load, right=True),
    Column("RUNTIMES", lambda each: ", ".join(one.name for one in each.supported_runtimes)),
    Column("HEARTBEAT", lambda each: each.last_heartbeat),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "worker", "worker list")
    command(commands, "list", "attune worker list")(list_workers)


def list_workers(session: Session) -> None:
    """List workers by their name."""
    session.show_all(session.client.workers.iterate(), _COLUMNS, empty="No worker has come yet.")
