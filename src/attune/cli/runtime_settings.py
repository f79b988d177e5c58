"""`attune settings`: what may be changed while everything runs."""

import difflib
from typing import Annotated, Any, Final, cast

import msgspec
import typer

from attune.cli.frame import command, group
from attune.cli.rendering import Column
from attune.cli.session import Session
from attune.client.queue_models import RuntimeSettings, SettingsInForce
from attune.client.requests import SettingChanges
from attune.kernel.errors import InvalidInput

_NAMES: Final = SettingsInForce.__struct_fields__


def _complete(incomplete: str) -> list[str]:
    return [name for name in _NAMES if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="The setting.", autocompletion=_complete)]

# Name, value as set, value in force.
_COLUMNS: list[Column[tuple[str, Any, Any]]] = [
    Column("SETTING", lambda each: each[0]),
    Column("SET TO", lambda each: each[1], right=True),
    Column("IN FORCE", lambda each: each[2], right=True),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "settings")
    command(commands, "show", "attune settings show")(show)
    command(commands, "set", "attune settings set max_concurrent_executions 20")(set_)
    command(commands, "unset", "attune settings unset max_concurrent_executions")(unset)


def show(session: Session) -> None:
    """Show the runtime settings: what was set, and what is in force."""
    found = session.client.settings.get()
    if session.for_people:
        session.show_all(_rows(found), _COLUMNS, empty="There are no settings.")
    else:
        session.dump(found)


def set_(
    session: Session,
    name: Name,
    value: Annotated[str, typer.Argument(help="A number.", metavar="VALUE")],
) -> None:
    """Change a setting, at once and for every process."""
    _change(session, _known(name), _number(name, value))


def unset(session: Session, name: Name) -> None:
    """Bring back a setting's default."""
    _change(session, _known(name), None)


def _change(session: Session, name: str, value: float | None) -> None:
    changes = cast(SettingChanges, {name: value})
    found = session.client.settings.update(**changes)
    now = getattr(found.effective, name)
    word = "off" if now is None else now
    source = " (the default)" if getattr(found, name) is None else ""
    session.tell(f"{name} is {word}{source}.", found)


def _known(name: str) -> str:
    if name in _NAMES:
        return name
    near = difflib.get_close_matches(name, _NAMES, n=1)
    hint = f" Did you mean {near[0]}?" if near else f" There are {', '.join(_NAMES)}."
    raise InvalidInput(f"There is no setting {name!r}.{hint}", field="NAME")


def _number(name: str, text: str) -> int | float:
    try:
        return msgspec.json.decode(text, type=int | float)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        sentence = f"{name} takes a number, not {text!r}; `attune settings unset {name}` brings back its default."
        raise InvalidInput(sentence, field=name) from error


def _rows(found: RuntimeSettings) -> list[tuple[str, Any, Any]]:
    return [(name, getattr(found, name), getattr(found.effective, name)) for name in _NAMES]
