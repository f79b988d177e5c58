"""`attune login`, `logout` and `whoami`."""

import os
from typing import Annotated

import typer

from attune.cli.frame import command
from attune.cli.rendering import Column, table
from attune.cli.session import Session
from attune.client.accounts import EffectivePermission
from attune.client.profiles import profiles_of

Login = Annotated[str | None, typer.Option("--login", help="Asked for where it is left out.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]

_RIGHTS: list[Column[EffectivePermission]] = [
    Column("RESOURCE", lambda each: each.resource),
    Column("ACTIONS", lambda each: ", ".join(each.actions)),
]


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "login",
        "attune login --url https://attune.example.com",
        "attune login --login ann --password-stdin < password.txt",
    )(login)
    command(app, "logout", "attune logout")(logout)
    command(app, "whoami", "attune whoami -o json")(whoami)


def login(session: Session, login: Login = None, password_stdin: PasswordStdin = False) -> None:
    """Log in to a server and remember it; commands that name no server then mean this one."""
    server = session.client.server
    name = login or typer.prompt("Login", err=True)
    tokens = session.client.auth.login(name, _password(name, from_stdin=password_stdin))
    who = tokens.user.login if tokens.user else name
    profiles = profiles_of(os.environ)
    profiles.keep(server.url, tokens, who)
    session.tell(
        f"Logged in to {server.url} as {who}; the tokens are in {profiles.file}.",
        {"url": server.url, "login": who},
    )


def logout(session: Session) -> None:
    """Forget the tokens of a server."""
    url = session.client.server.url
    forgotten = profiles_of(os.environ).forget(url)
    words = f"Logged out of {url}." if forgotten else f"You were not logged in to {url}."
    session.tell(words, {"url": url, "logged_out": forgotten})


def whoami(session: Session) -> None:
    """Show the server, the account and its rights."""
    server = session.client.server
    me = session.client.auth.me()
    rights = [("Rights", table(me.effective_permissions, _RIGHTS, session.now))]
    session.show_one(
        me,
        [
            ("Server", f"{server.url} ({server.origin})"),
            ("Login", me.login),
            ("Name", me.display_name),
            ("Permission sets", ", ".join(me.assigned_permission_set_refs) or None),
        ],
        *(rights if me.effective_permissions else []),
    )


def _password(login: str, *, from_stdin: bool) -> str:
    if from_stdin:
        return typer.get_text_stream("stdin").readline().rstrip("\r\n")
    typed: str = typer.prompt(f"Password of {login}", hide_input=True, err=True)
    return typed
