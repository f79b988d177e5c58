"""`attune`: the command line's frame.

Only the module of the command that is called is loaded, so that a short command starts fast; help and
completion load all of them.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

import typer

from attune.kernel.errors import AttuneError

_MODULE_OF: Final = {
    "up": "attune.cli.processes",
    "api": "attune.cli.processes",
    "executor": "attune.cli.processes",
    "worker": "attune.cli.processes",
    "sensor": "attune.cli.processes",
    "db": "attune.cli.database",
}


def main() -> None:
    """Errors that we foresaw are one sentence; anything else is a bug and shows its traceback."""
    try:
        app_for(sys.argv[1:])()
    except AttuneError as error:
        typer.secho(f"attune: {error.message}", fg=typer.colors.RED, err=True)
        sys.exit(2)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that these arguments begin with, or with every one."""
    app = typer.Typer(
        name="attune",
        help="Event-driven automation: events meet rules, rules ask for executions, workers run them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    called = next((each for each in arguments if not each.startswith("-")), "")
    modules = [_MODULE_OF[called]] if called in _MODULE_OF else dict.fromkeys(_MODULE_OF.values())
    for module in modules:
        importlib.import_module(module).add_to(app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attune {version('attune-engine')}")
        raise typer.Exit


def _options(
    _version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass
