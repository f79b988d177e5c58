"""`attune why`: what an execution waits for, in words."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from attune.cli.frame import command
from attune.cli.rendering import Column, duration, plain, relative, section, table
from attune.cli.session import Session
from attune.client.models import Execution
from attune.client.queue_models import Blocker, Estimate, Wait, Why

Id = Annotated[int, typer.Argument(help="The execution's id.", metavar="ID")]

_MOST_HOLDERS = 10


def _holders(blocker: Blocker) -> str | None:
    held = blocker.holders or []
    shown = ", ".join(str(each) for each in held[:_MOST_HOLDERS])
    more = len(held) - _MOST_HOLDERS
    return f"{shown} and {more} more" if more > 0 else shown or None


_BLOCKERS: list[Column[Blocker]] = [
    Column("GATE", lambda each: each.gate),
    Column("WHY", lambda each: each.text),
    Column("LIMIT", lambda each: each.limit, right=True),
    Column("HELD BY", _holders),
    Column("OPENS", lambda each: each.until),
    Column("POLICY", lambda each: each.policy_ref),
]


def add_to(app: typer.Typer) -> None:
    command(app, "why", "attune why 42", "attune why 42 -o json")(why)


def why(session: Session, id_: Id) -> None:
    """Tell why an execution waits, and for what: its place, what is in its way, what must happen next."""
    found = session.client.queues.why(id_)
    if not session.for_people:
        session.dump(found)
        return
    for part in _parts(found, session.client.executions.get(id_), session.now):
        session.console.print(part)


def _parts(found: Why, execution: Execution, now: datetime) -> Iterator[RenderableType]:
    yield Text(_headline(found, execution), style="bold")
    if blocker := _first(found):
        yield Text(f"First in its way: {_blocker_words(blocker, now)}")
    if found.next:
        yield Text(f"What must happen next: {plain(found.next)}")
    if found.waiting:
        yield Text(_estimate(found.estimate))
    if found.blockers:
        yield section("In its way", table(found.blockers, _BLOCKERS, now))
    if found.history:
        yield section("What it waited for", table(found.history, _history(now), now))


def _headline(found: Why, execution: Execution) -> str:
    name = f"Execution {execution.id} of {plain(execution.action_ref)}"
    if not found.waiting:
        return f"{name} does not wait: it is {execution.status}."
    place = f" at position {found.position}" if found.position is not None else ""
    band = f" with priority {execution.priority}" if execution.priority else ""
    return f"{name} waits{place}{band}."


def _first(found: Why) -> Blocker | None:
    """The blocker that is named first: by its gate, or as a whole."""
    named: Any = found.first_blocker
    gate = named.get("gate") if isinstance(named, dict) else named
    return next((each for each in found.blockers if each.gate == gate), None)


def _blocker_words(blocker: Blocker, now: datetime) -> str:
    words = f"{blocker.gate}: {blocker.text}" if blocker.text else blocker.gate
    details = [
        f"policy {blocker.policy_ref}" if blocker.policy_ref else None,
        f"opens {relative(blocker.until, now)}" if blocker.until else None,
    ]
    told = ", ".join(each for each in details if each)
    return plain(f"{words} ({told})" if told else words)


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "When it will start cannot be told yet."
    half, most = duration(estimate.p50_seconds), duration(estimate.p90_seconds)
    return f"It will probably start in {half}; nine of ten times within {most}."


def _history(now: datetime) -> list[Column[Wait]]:
    return [
        Column("REASON", lambda each: each.reason),
        Column("SINCE", lambda each: each.since),
        Column("UNTIL", lambda each: each.until or "now"),
        Column(
            "FOR", lambda each: duration(((each.until or now) - each.since).total_seconds()), True
        ),
    ]
