"""`attune dead-letter`: messages that nobody could handle."""

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, Final, TypedDict

import typer

from attune.bus.outcome import Reason
from attune.cli.dead_letter_tables import LETTER_COLUMNS, letter_fields
from attune.cli.failures import REFUSED
from attune.cli.frame import command, group
from attune.cli.rendering import pretty
from attune.cli.session import Session
from attune.client.dead_letters import LetterChoice, ReplayedLetters
from attune.client.errors import AttuneApiError
from attune.kernel.errors import InvalidInput

_MOST_AT_ONCE: Final = 1000

Id = Annotated[int, typer.Argument(help="The dead letter's id.", metavar="ID")]
Ids = Annotated[list[int], typer.Argument(help="Ids of dead letters.", metavar="ID...")]
SomeIds = Annotated[list[int] | None, typer.Argument(help="Ids of dead letters.", metavar="ID")]
OfQueue = Annotated[str | None, typer.Option("--queue", help="That died in this queue.")]
OfReason = Annotated[Reason | None, typer.Option("--reason", help="That died of this.")]
OfType = Annotated[
    str | None, typer.Option("--type", help="Messages of this type: execution.scheduled, …")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")]


class _State(TypedDict, total=False):
    replayed: bool


def add_to(app: typer.Typer) -> None:
    commands = group(app, "dead-letter")
    command(
        commands,
        "list",
        "attune dead-letter list --waiting",
        "attune dead-letter list --queue executor.execution.requested --reason failed",
    )(list_letters)
    command(commands, "show", "attune dead-letter show 7")(show)
    command(
        commands,
        "replay",
        "attune dead-letter replay 7 8",
        "attune dead-letter replay --all --reason retries_exhausted --yes",
    )(replay)
    command(commands, "delete", "attune dead-letter delete 7 8")(delete)


def list_letters(
    session: Session,
    queue: OfQueue = None,
    reason: OfReason = None,
    type_: OfType = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Not replayed yet.")] = False,
    replayed: Annotated[bool, typer.Option("--replayed", help="Replayed already.")] = False,
    limit: Limit = 20,
) -> None:
    """List dead letters, newest first."""
    if waiting and replayed:
        raise InvalidInput("--waiting and --replayed leave nothing: name one of them.")
    choice, state = _choice(queue, reason, type_), _State()
    if waiting or replayed:
        state["replayed"] = replayed
    letters = session.client.dead_letters
    found = islice(letters.iterate(page_size=min(limit, 100), **choice, **state), limit)
    words = "No dead letters are like that." if choice or state else "There are no dead letters."
    session.show_all(found, LETTER_COLUMNS, empty=words)


def show(session: Session, id_: Id) -> None:
    """Show a dead letter with its body, which may hold anything."""
    found = session.client.dead_letters.get(id_)
    title = "Body" if found.body_encoding == "utf-8" else f"Body ({found.body_encoding})"
    session.show_one(found, letter_fields(found), (title, pretty(found.body)))


def replay(
    session: Session,
    ids: SomeIds = None,
    everything: Annotated[bool, typer.Option("--all", help="All that wait.")] = False,
    queue: OfQueue = None,
    reason: OfReason = None,
    type_: OfType = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Send dead letters back to where they died: those with these ids, or with --all those that wait."""
    choice = _choice(queue, reason, type_)
    _check_use(ids or [], choice, everything=everything)
    if not everything:
        letters = session.client.dead_letters
        _each(session, ids or [], letters.replay, "was replayed")
        return
    if not yes and is_terminal():
        _confirm(session, choice)
    done = _replay_all(session, choice)
    for each in done.refused:
        session.note(f"attune: {each.id}: {each.error}")
    session.tell(
        f"{_counted(done.replayed)} replayed; {done.remaining} like that still wait.", done
    )
    if done.refused:
        raise typer.Exit(REFUSED)


def delete(session: Session, ids: Ids) -> None:
    """Delete dead letters. One that is not there does not keep the others from it."""
    _each(session, ids, session.client.dead_letters.delete, "was deleted")


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def _choice(queue: str | None, reason: Reason | None, type_: str | None) -> LetterChoice:
    choice: LetterChoice = {}
    if queue is not None:
        choice["queue"] = queue
    if reason is not None:
        choice["reason"] = reason.value
    if type_ is not None:
        choice["message_type"] = type_
    return choice


def _check_use(ids: Sequence[int], choice: LetterChoice, *, everything: bool) -> None:
    if everything and ids:
        raise InvalidInput("Name ids or --all, not both.")
    if not everything and not ids:
        raise InvalidInput("Name the ids of dead letters, or --all for those that wait.")
    if choice and not everything:
        raise InvalidInput("--queue, --reason and --type choose among --all, not among ids.")


def _each(session: Session, ids: Sequence[int], do: Callable[[int], Any], what: str) -> None:
    done: list[Any] = []
    refused = False
    for id_ in ids:
        try:
            done.append(do(id_))
        except AttuneApiError as error:
            refused = True
            session.note(f"attune: {id_}: {error.message}")
            continue
        if session.for_people:
            session.tell(f"The dead letter {id_} {what}.", done[-1])
    if not session.for_people:
        session.dump(done)
    if refused:
        raise typer.Exit(REFUSED)


def _replay_all(session: Session, choice: LetterChoice) -> ReplayedLetters:
    """Call after call, as one takes a bounded number; no more than waited at first, as some may die again."""
    letters = session.client.dead_letters
    done = last = letters.replay_many(**choice)
    goal = done.replayed + done.remaining
    while last.replayed == _MOST_AT_ONCE and done.replayed < goal:
        last = letters.replay_many(**choice)
        known = {each.id for each in done.refused}
        done = ReplayedLetters(
            replayed=done.replayed + last.replayed,
            refused=[*done.refused, *(each for each in last.refused if each.id not in known)],
            remaining=last.remaining,
        )
    return done


def _confirm(session: Session, choice: LetterChoice) -> None:
    page = session.client.dead_letters.list(page_size=1, replayed=False, **choice)
    total = page.pagination.total_items or 0
    typer.echo(f"Replay {_counted(total)}? [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        session.note("Nothing was replayed.")
        raise typer.Exit(REFUSED)


def _counted(count: int) -> str:
    return f"{count} dead {'letter' if count == 1 else 'letters'}"
