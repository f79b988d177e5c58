"""`python -m bench.cost`: what one execution costs on each profile, counted: commits, statements, rows and messages."""

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from attune.kernel.envelope import Envelope
from attune.store.database import Database, Tx
from bench.flow import free, plane, singly
from harness.control_plane import ControlPlane
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

COUNT = 500


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run())


async def _run() -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgresql = stack.enter_context(PostgreSQL())
        rabbitmq = stack.enter_context(RabbitMQ())
        await _show("embedded", await plane(stack, ATTUNE__DATA_DIR=str(folder / "embedded")))
        servers = await plane(
            stack,
            ATTUNE__DATA_DIR=str(folder / "servers"),
            ATTUNE__DATABASE__URL=postgresql.create_database(),
            ATTUNE__MESSAGE_QUEUE__URL=rabbitmq.url,
        )
        await _show("PostgreSQL and RabbitMQ", servers)


async def _show(name: str, plane: ControlPlane) -> None:
    for way, work in (("in bulk", free), ("one by one", singly)):
        await work(plane, 50)
        with counting(plane) as counts:
            await work(plane, COUNT)
        print(f"{name}, {way}: for one execution of {COUNT}")
        for what, count in sorted(counts.items()):
            print(f"  {what:<28} {count / COUNT:8.2f}")


@contextmanager
def counting(plane: ControlPlane) -> Iterator[Counter[str]]:
    """Counts what goes through the ports while it lasts."""
    counts: Counter[str] = Counter()
    with (
        _counted(type(plane.database), "_run", _commit(counts)),
        _counted(type(plane.database), "_read", _read(counts)),
        _counted(Tx, "insert", _insert(counts)),
        _counted(Tx, "execute", _statement(counts)),
        _counted(Tx, "all", _statement(counts)),
        _counted(Tx, "first", _statement(counts)),
        _counted(type(plane.bus), "publish", _publish(counts)),
    ):
        yield counts


Note = Callable[..., None]


def _commit(counts: Counter[str]) -> Note:
    def note(_database: Database, *_args: Any, **_kwargs: Any) -> None:
        counts["commits"] += 1

    return note


def _read(counts: Counter[str]) -> Note:
    def note(_database: Database, *_args: Any, **_kwargs: Any) -> None:
        counts["reads"] += 1

    return note


def _insert(counts: Counter[str]) -> Note:
    def note(_tx: Tx, table: Any, rows: Any, **_kwargs: Any) -> None:
        counts["statements"] += 1
        counts[f"rows into {table.name}"] += len(rows)

    return note


def _statement(counts: Counter[str]) -> Note:
    def note(_tx: Tx, *_args: Any, **_kwargs: Any) -> None:
        counts["statements"] += 1

    return note


def _publish(counts: Counter[str]) -> Note:
    def note(_bus: Any, *envelopes: Envelope, **_kwargs: Any) -> None:
        counts["messages"] += len(envelopes)
        counts["items in messages"] += sum(len(envelope.items) for envelope in envelopes)

    return note


@contextmanager
def _counted(owner: type, name: str, note: Note) -> Iterator[None]:
    original = getattr(owner, name)

    @functools.wraps(original)
    async def counted(*args: Any, **kwargs: Any) -> Any:
        note(*args, **kwargs)
        return await original(*args, **kwargs)

    setattr(owner, name, counted)
    try:
        yield
    finally:
        setattr(owner, name, original)


if __name__ == "__main__":
    main()
