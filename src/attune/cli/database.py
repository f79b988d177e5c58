"""`attune db`: the database's schema."""

import asyncio

import typer

from attune.cli.options import ConfigFile, settings_and_logs
from attune.kernel.urls import masked
from attune.store import migrate


def add_to(app: typer.Typer) -> None:
    commands = typer.Typer(help="Upgrade the database and check its schema.", no_args_is_help=True)
    commands.command()(upgrade)
    commands.command()(check)
    app.add_typer(commands, name="db")


def upgrade(config: ConfigFile = None) -> None:
    """Bring the database to the schema of this version; safe to repeat, and to run several times at once."""
    settings = settings_and_logs(config)
    revision = asyncio.run(migrate.upgrade(settings.database_url))
    typer.echo(f"{masked(settings.database_url)} has schema {revision}.")


def check(config: ConfigFile = None) -> None:
    """Tell whether the database has the schema of this version; exit code 2 if not."""
    settings = settings_and_logs(config)
    asyncio.run(migrate.check(settings.database_url))
    typer.echo(f"{masked(settings.database_url)} has the schema of this version.")
