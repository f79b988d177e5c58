"""`attune pack`."""

from pathlib import Path
from typing import Annotated

import typer

from attune.cli.completion import pack_refs
from attune.cli.failures import near_names
from attune.cli.frame import command, group
from attune.cli.rendering import Column, pretty
from attune.cli.session import Session
from attune.client.definitions import Pack, PackSummary

Ref = Annotated[str, typer.Argument(help="The pack.", autocompletion=pack_refs)]
Source = Annotated[Path, typer.Argument(help="A folder with a pack.yaml, or a .tar.gz of one.")]
Force = Annotated[bool, typer.Option("--force", help="Update the pack if it is there already.")]

_COLUMNS: list[Column[PackSummary]] = [
    Column("REF", lambda each: each.ref),
    Column("VERSION", lambda each: each.version),
    Column("LABEL", lambda each: each.label),
    Column("UPDATED", lambda each: each.updated),
]


def add_to(app: typer.Typer) -> None:
    commands = group(app, "pack")
    command(
        commands,
        "install",
        "attune pack install ./my-pack",
        "attune pack install my.tar.gz --force",
    )(install)
    command(commands, "list", "attune pack list")(list_packs)
    command(commands, "show", "attune pack show core")(show)


def install(session: Session, path: Source, force: Force = False) -> None:
    """Send a pack to the server: its actions, triggers, rules and what else it holds."""
    installed = session.client.packs.upload(path, force=force)
    pack = installed.pack
    session.tell(f"Pack {pack.ref} {pack.version} is installed.", installed)
    for warning in installed.warnings:
        session.note(f"warning: {warning}")


def list_packs(session: Session) -> None:
    """List packs by their ref."""
    found = session.client.packs.iterate()
    session.show_all(found, _COLUMNS, empty="There are no packs that you may see.")


def show(session: Session, ref: Ref) -> None:
    """Show a pack and its configuration."""
    packs = session.client.packs
    with near_names(ref, packs.iterate):
        found = packs.get(ref)
    parts = {"Configuration": found.config, "Configuration's schema": found.conf_schema}
    sections = [(title, pretty(value)) for title, value in parts.items() if value]
    session.show_one(found, _fields(found), *sections)


def _fields(pack: Pack) -> list[tuple[str, object]]:
    return [
        ("Pack", pack.ref),
        ("Label", pack.label),
        ("Version", pack.version),
        ("Description", pack.description),
        ("Tags", ", ".join(pack.tags) or None),
        ("Needs", ", ".join(pack.dependencies) or None),
        ("Created", pack.created),
        ("Updated", pack.updated),
    ]
