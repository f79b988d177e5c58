"""`attune up`, and the roles that it puts into one process: api, executor, worker, sensor."""

import asyncio
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop

from attune.cli.options import ConfigFile, settings_and_logs
from attune.cli.starting import loading
from attune.services.process import Process
from attune.services.roles import Role, everything, role

DataDir = Annotated[
    Path | None, typer.Option(help="Where the database, packs and secrets of this machine live.")
]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 takes any free one.")]
Demo = Annotated[
    bool, typer.Option("--demo/--no-demo", help="Whether the pack `demo` is loaded, to play with.")
]

# Work makes many objects and few circles of them. Seven hundred new ones, as Python has it, is one batch of executions.
_OBJECTS_BETWEEN_LOOKS: Final = 10_000

_HELP = {
    Role.API: "Serve the REST API.",
    Role.EXECUTOR: "Turn events into executions and hand them to workers.",
    Role.WORKER: "Run the actions of executions.",
    Role.SENSOR: "Watch the world and tell of events.",
}


def add_to(app: typer.Typer) -> None:
    app.command(help="Run everything in this one process, on SQLite.")(up)
    for one in Role:
        app.command(name=one.value, help=f"{_HELP[one]} Needs PostgreSQL and RabbitMQ.")(
            _runner(one)
        )


def up(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    demo: Demo = True,
) -> None:
    settings = settings_and_logs(config, data_dir=data_dir, server__host=host, server__port=port)
    _run(lambda: everything(settings, _announce, demo=demo))


def _runner(one: Role) -> Callable[..., None]:
    def run(config: ConfigFile = None, host: Host = None, port: Port = None) -> None:
        settings = settings_and_logs(config, server__host=host, server__port=port)
        _run(lambda: role(one, settings))

    def run_without_address(config: ConfigFile = None) -> None:
        settings = settings_and_logs(config)
        _run(lambda: role(one, settings))

    return run if one is Role.API else run_without_address


def _announce(address: str) -> None:
    typer.echo(f"Attune is ready at {address}")
    typer.echo(f"  health  {address}/health/detailed")
    typer.echo(f"  docs    {address}/docs")
    typer.echo("  stop    Ctrl-C")


def _run(make: Callable[[], Process]) -> None:
    with loading():
        process = make()
    _spare_the_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(process.run())
    sys.exit(code)


def _spare_the_collector() -> None:
    """What was loaded by now stays to the end, so nobody need look through it again for what can go."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS, 10, 10)
