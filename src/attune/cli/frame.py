"""How a command that talks to a server is written: a function of a `Session` and its own arguments.

The options that all of them share are added here, so that they may stand after any command.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

from attune.cli.choices import DataDir, Output, Url, choices_of, remember
from attune.cli.commands import COMMANDS
from attune.cli.failures import told
from attune.cli.quick import QuickCommand, QuickGroup
from attune.cli.session import Session

Command = Callable[..., None]


def group(app: typer.Typer, name: str, listed: str | None = None) -> typer.Typer:
    """The group of commands of one noun; `listed` is its name in the list of commands, where that differs."""
    commands = typer.Typer(cls=QuickGroup, help=COMMANDS[listed or name].help, no_args_is_help=True)
    commands.callback()(remember)
    app.add_typer(commands, name=name)
    return commands


def command(app: typer.Typer, name: str, *examples: str) -> Callable[[Command], Command]:
    """Add a command; its docstring is its help, and the examples stand below it."""

    def add(function: Command) -> Command:
        epilog = "Examples:\n\n" + "\n\n".join(examples) if examples else None
        app.command(name, cls=QuickCommand, epilog=epilog)(_with_session(function))
        return function

    return add


def _with_session(function: Command) -> Command:
    @functools.wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        choices = choices_of(context)
        choices.take(**{name: values.pop(name) for name in _SHARED})
        session = Session(choices)
        try:
            with told():
                function(session, **values)
        finally:
            session.close()

    _first, *own = inspect.signature(function).parameters.values()
    context = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [context, *own, *_SHARED.values()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _option(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


_SHARED = {
    name: _option(name, annotation)
    for name, annotation in (("output", Output), ("url", Url), ("data_dir", DataDir))
}
