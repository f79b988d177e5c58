"""Where the spans begin and end: wrapped around the ports and the stages while a measurement lasts."""

import functools
import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from attune.bus.port import Post
from attune.store.database import Database
from attune.store.postgresql import PostgreSQLDatabase
from attune.store.postgresql_session import Call, Rows, Session
from attune.store.sqlite import SQLiteDatabase
from attune.store.sqlite_tx import SQLiteTx
from bench.cost.ledger import Ledger, shortened
from bench.cost.places import STAGES, stage_of_step
from bench.cost.placing import Wrapper, put, put_on, wrap
from bench.cost.spans import Span
from harness.control_plane import ControlPlane

_COMMIT: Final = "BEGIN … COMMIT of the writer"
_GIST: Final = 30

# Questions of the measurement itself. It goes with a step into the store's thread.
_unseen: ContextVar[bool] = ContextVar("unseen", default=False)


@contextmanager
def unseen() -> Iterator[None]:
    """What is done meanwhile is not measured."""
    token = _unseen.set(True)
    try:
        yield
    finally:
        _unseen.reset(token)


@contextmanager
def probes(plane: ControlPlane) -> Iterator[Ledger]:
    ledger = Ledger()
    with ExitStack() as stack:
        for place, name in STAGES:
            put(stack, ledger, place, _stage(ledger, name))
        for port in ("run", "jot", "read"):
            wrap(stack, Database, port, _step(ledger, port))
        if isinstance(plane.database, SQLiteDatabase):
            put(stack, ledger, "attune.store.sqlite_threads:Writer._transact", _group(ledger))
            for method in ("_fetch", "_execute", "_write"):
                put_on(stack, ledger, SQLiteTx, method, _statement(ledger))
        else:
            put_on(stack, ledger, Session, "ask", _round_trip(ledger))
        wrap(stack, type(plane.bus), "post", _publish(ledger))
        yield ledger


def _stage(ledger: Ledger, name: str) -> Wrapper:
    def wrapper(original: Any) -> Any:
        if not inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            def called(*args: Any, **kwargs: Any) -> Any:
                return Span(name, ledger.note_stage).call(original, *args, **kwargs)

            return called

        @functools.wraps(original)
        async def driven(*args: Any, **kwargs: Any) -> Any:
            if _unseen.get():
                return await original(*args, **kwargs)
            return await Span(name, ledger.note_stage).drive(original(*args, **kwargs))

        return driven

    return wrapper


def _step(ledger: Ledger, port: str) -> Wrapper:
    """Every step is a stage, by the name that it has as one, or by its own."""

    def wrapper(original: Any) -> Any:
        async def run(database: Database, step: Any, *args: Any, **kwargs: Any) -> Any:
            if _unseen.get():
                return await original(database, step, *args, **kwargs)
            writes = port != "read"
            ledger.count("steps that write" if writes else "steps that read")
            if writes and isinstance(database, PostgreSQLDatabase):
                ledger.count("commits")
            name = stage_of_step(step)
            timed = _stage(ledger, name)(_as_coroutine_function(step))
            around = Span(name, ledger.note_around)
            return await around.drive(original(database, timed, *args, **kwargs))

        return run

    return wrapper


def _as_coroutine_function(step: Any) -> Any:
    @functools.wraps(step)
    async def stepped(*args: Any, **kwargs: Any) -> Any:
        return await step(*args, **kwargs)

    return stepped


def _statement(ledger: Ledger) -> Wrapper:
    def wrapper(original: Any) -> Any:
        def statement(tx: Any, sql: Any, *args: Any) -> Any:
            if _unseen.get():
                return original(tx, sql, *args)
            rows = 0

            def counted() -> Any:
                nonlocal rows
                answer = original(tx, sql, *args)
                rows = answer if isinstance(answer, int) else len(answer)
                return answer

            text = sql if isinstance(sql, str) else f"INSERT INTO {sql.table}"
            span = Span(text, lambda span: ledger.note_statement(span, rows))
            return span.call(counted)

        return statement

    return wrapper


def _group(ledger: Ledger) -> Wrapper:
    """SQLite's writer: steps that wait share a commit, so those are counted here."""

    def wrapper(original: Any) -> Any:
        def transact(writer: Any, first: Any, *rest: Any) -> Any:
            if first.context.get(_unseen, False):
                return original(writer, first, *rest)
            ledger.count("commits")
            span = Span(_COMMIT, lambda span: ledger.note_statement(span, 0, counts=False))
            return span.call(original, writer, first, *rest)

        return transact

    return wrapper


def _round_trip(ledger: Ledger) -> Wrapper:
    """PostgreSQL: many statements, one wait."""

    def wrapper(original: Any) -> Any:
        async def ask(session: Session, *calls: Call) -> list[Rows]:
            if _unseen.get():
                return await original(session, *calls)  # type: ignore[no-any-return]
            told: list[Rows] = []

            async def counted() -> list[Rows]:
                told.extend(await original(session, *calls))
                return told

            def note(span: Span) -> None:
                ledger.note_round_trip(
                    span, [(c.sql, r.touched) for c, r in zip(calls, told, strict=False)]
                )

            await Span("; ".join(_gist(call.sql) for call in calls), note).drive(counted())
            return told

        return ask

    return wrapper


def _gist(sql: str) -> str:
    return shortened(sql)[:_GIST]


def _publish(ledger: Ledger) -> Wrapper:
    def wrapper(original: Any) -> Any:
        def post(bus: Any, *posts: Post) -> Any:
            ledger.count("messages", len(posts))
            ledger.count("items in messages", sum(len(each.items) for _, each in posts))
            return Span("publish", ledger.note_stage).call(original, bus, *posts)

        return post

    return wrapper
