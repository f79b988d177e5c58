"""`attune queue verify`: replays the decision log and proves that order and limits held."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec
import typer
from rich.status import Status

from attune.cli.completion import action_refs
from attune.cli.failures import REFUSED
from attune.cli.frame import command
from attune.cli.live import status_line
from attune.cli.rendering import console_for
from attune.cli.session import Session
from attune.client.decisions import DecisionFilters, LoggedDecision
from attune.client.errors import BadAnswer
from attune.kernel.errors import InvalidInput
from attune.pipeline.queues.decisions import Decision, decoded
from attune.pipeline.queues.verify import Proof, Replay

_SPAN: Final = re.compile(r"([0-9]{1,9})\s*(s|min|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_RULE: Final = "must be a time such as 2026-01-31T08:00 (in UTC) or a span such as 30m, 2h or 1d"
_EVERY: Final = 500

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME|SPAN",
        show_default=False,
        help="From a time on, or from so long ago: 30m, 2h, 1d.",
    ),
]
Action = Annotated[
    str | None,
    typer.Option(
        "--action",
        metavar="REF",
        show_default=False,
        help="Only the queues of this action.",
        autocompletion=action_refs,
    ),
]


def add_verify(group: typer.Typer) -> None:
    examples = ("attune queue verify", "attune queue verify --since 2h --action core.echo")
    command(group, "verify", *examples)(verify)


def verify(session: Session, since: Since = None, action: Action = None) -> None:
    """Prove from the decision log that order and limits held, or show the first violation."""
    filters = DecisionFilters()
    if since is not None:
        filters["since"] = moment(since, session.now)
    if action is not None:
        filters["action_ref"] = action
    rows = session.client.decisions.iterate(**filters)
    with status_line(console_for(errors=True), "Reading the decision log", shown=True) as line:
        proof, last = _replayed(rows, line)
    _show(session, proof, last)
    if proof.violation is not None:
        raise typer.Exit(REFUSED)


def moment(text: str, now: datetime) -> datetime:
    """A time, or a span before now; a time that names no zone is in UTC."""
    span = _SPAN.fullmatch(text.strip())
    try:
        if span is not None:
            return now - timedelta(seconds=int(span[1]) * _SECONDS[span[2]])
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"--since: {_RULE}", field="since") from error


def _replayed(
    rows: Iterable[LoggedDecision], line: Status | None
) -> tuple[Proof, LoggedDecision | None]:
    """The proof, and the row at which it ended."""
    replay, last = Replay(), None
    for count, last in enumerate(rows, start=1):
        if line is not None and count % _EVERY == 0:
            line.update(f"Replayed {count:,} decisions, now in lane {last.lane}")
        if replay.feed(_decision(last)) is not None:
            break
    return replay.proof(), last


def _decision(row: LoggedDecision) -> Decision:
    try:
        items = decoded(row.items)
    except msgspec.ValidationError as error:
        raise BadAnswer(
            f"Decision {row.number} of lane {row.lane} holds what this version cannot read: {error}."
            " Use the version of the server."
        ) from error
    return Decision(
        lane=row.lane,
        number=row.number,
        at=row.at,
        active_before=row.active_before,
        active_after=row.active_after,
        queue_length=row.queue_length,
        max_concurrent=row.max_concurrent,
        reason=row.reason,
        items=items,
    )


def _show(session: Session, proof: Proof, last: LoggedDecision | None) -> None:
    if not session.for_people:
        session.dump(proof)
        return
    for line in _lines(proof, last):
        session.console.print(line, markup=False, soft_wrap=True)


def _lines(proof: Proof, last: LoggedDecision | None) -> Iterator[str]:
    if proof.first_at is None or proof.last_at is None:
        yield "There are no decisions to verify."
    elif proof.violation is not None:
        yield f"Violation: {proof.violation.text}"
        yield f"{_whose(last)}{_count(proof.decisions, 'decision')} were replayed up to there."
    else:
        span = f"{_time(proof.first_at)} to {_time(proof.last_at)}"
        yield (
            f"Order and limits held: {_count(proof.admissions, 'admission')} of"
            f" {_count(proof.executions, 'execution')} in {_count(proof.lanes, 'lane')},"
            f" {_count(proof.decisions, 'decision')} from {span} UTC."
        )
        if proof.partial_lanes:
            yield (
                f"{_count(proof.partial_lanes, 'lane')} had executions, or a history, before the first"
                " decision that was read; those executions are counted, their order is not known."
            )


def _whose(row: LoggedDecision | None) -> str:
    if row is None or row.action_ref is None:
        return ""
    group = f" {msgspec.json.encode(row.group).decode()}" if row.group is not None else ""
    return f"Lane {row.lane} is the queue of {row.action_ref}{group}. "


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
