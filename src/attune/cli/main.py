"""`attune`: the command line's frame.

Only the module of the command that is called is loaded, so that a short command starts fast; for help and
completion the list in `commands.py` is enough.
"""

import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import typer

import attune
from attune.cli.choices import Output, Url, remember
from attune.cli.commands import COMMANDS
from attune.cli.quick import QuickGroup
from attune.cli.starting import loading
from attune.kernel.errors import AttuneError

_TAKE_A_VALUE: Final = frozenset({"-o", "--output", "--url"})


def main() -> None:
    """Errors that we foresaw are one sentence; anything else is a bug and shows its traceback."""
    try:
        with loading():
            app = app_for(_words(sys.argv[1:], os.environ))
        app()
    except AttuneError as error:
        typer.secho(f"attune: {error.message}", fg=typer.colors.RED, err=True)
        sys.exit(2)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that these arguments begin with, or with a list of them all."""
    app = typer.Typer(
        name="attune",
        cls=QuickGroup,
        help="Event-driven automation: events meet rules, rules ask for executions, workers run them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="First steps: `attune up` in one terminal, `attune run core.echo -p message=hello` in another.",
    )
    app.callback()(_options)
    called = _called(arguments)
    if called is None:
        for name, command in COMMANDS.items():
            app.command(name, help=command.help)(_listed)
    else:
        importlib.import_module(f"attune.cli.{COMMANDS[called].module}").add_to(app)
    return app


def _called(arguments: Sequence[str]) -> str | None:
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in _TAKE_A_VALUE:
            rest = rest[1:]
        elif not word.startswith("-"):
            pair = " ".join([word, *rest[:1]])
            return next((name for name in (pair, word) if name in COMMANDS), None)
    return None


def _words(arguments: Sequence[str], environ: Mapping[str, str]) -> Sequence[str]:
    """What is being typed, when the shell asks for completions in place of running the command.

    The word under the cursor does not count: whether it is a command is not known yet.
    """
    if "_ATTUNE_COMPLETE" not in environ:
        return arguments
    line = environ.get("COMP_WORDS") or environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # a quotation that is not closed yet
        words = line.split()[1:]
    finished = line.endswith((" ", "\n"))
    if "COMP_CWORD" in environ and environ["COMP_CWORD"].isdecimal():
        return words[: int(environ["COMP_CWORD"]) - 1]
    return words if finished else words[:-1]


def _listed() -> None:
    """Stands in the list of commands; whoever calls one by its name gets the real one."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attune {attune.__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    output: Output = None,
    url: Url = None,
    _version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    remember(context, output, url)
