"""How a command that failed says so: a sentence on standard error, and an exit code.

1: the server refused, is away, or the thing did not end well. 2: the command was used wrongly.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final, Protocol

import typer

from attune.client.errors import AttuneApiError, NotAuthenticated, NotFinished, NotFound, ServerAway
from attune.kernel.errors import AttuneError

REFUSED: Final = 1
MISUSED: Final = 2
_MOST_NAMES: Final = 1000
_HINTS: Final[dict[type[AttuneError], str]] = {
    ServerAway: "Start a server with `attune up`, or name another with --url or ATTUNE_URL.",
    NotAuthenticated: "Log in with `attune login`.",
}


class Named(Protocol):
    @property
    def ref(self) -> str: ...


@contextmanager
def told() -> Iterator[None]:
    try:
        yield
    except AttuneError as error:
        _tell(error)
        failed = isinstance(error, AttuneApiError | ServerAway | NotFinished)
        raise typer.Exit(REFUSED if failed else MISUSED) from error


@contextmanager
def near_names(ref: str, known: Callable[[], Iterable[Named]]) -> Iterator[None]:
    """A ref that is not found is answered with those that look like it."""
    try:
        yield
    except NotFound as error:
        near = _near(ref, known)
        if not near:
            raise
        sentence = f"{error.message.rstrip('.')}. Did you mean {' or '.join(near)}?"
        raise NotFound(sentence, status=error.status, code=error.code) from error


def _near(ref: str, known: Callable[[], Iterable[Named]]) -> list[str]:
    try:
        refs = [each.ref for each in islice(known(), _MOST_NAMES)]
    except AttuneError:
        return []
    if ref in refs:  # something else was not found
        return []
    close = difflib.get_close_matches(ref, refs, n=3, cutoff=0.8)
    names = {each.partition(".")[2]: each for each in refs}  # the pack may have been left out
    named = [names[each] for each in difflib.get_close_matches(ref, names, n=3, cutoff=0.7)]
    return close or named or difflib.get_close_matches(ref, refs, n=1)


def _tell(error: AttuneError) -> None:
    hint = next((text for kind, text in _HINTS.items() if isinstance(error, kind)), "")
    sentence = " ".join(part for part in (error.message, hint) if part)
    typer.secho(f"attune: {sentence}", fg=typer.colors.RED, err=True)
    if isinstance(error, AttuneApiError):
        for field, rule in error.details.items():
            if str(rule) not in error.message:
                typer.echo(f"  {field}: {rule}", err=True)
