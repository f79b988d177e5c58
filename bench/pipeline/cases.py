"""The cases of both profiles. Each profile has two installations, which wait while others are measured.

A worker's capacity is a setting, as a prefetch is elsewhere: 100 where nothing limits, 10 where a policy does.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.measure import Case, Gauge
from bench.pipeline import footprint, latency, loads, submissions
from bench.pipeline.installation import (
    FREE_CAPACITY,
    LIMITED_CAPACITY,
    Installation,
    embedded,
    servers,
)
from bench.pipeline.pack import PYTHON, REUSED, SHELL
from bench.results import MEGABYTES, MILLISECONDS
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ


@dataclass(frozen=True)
class Sizes:
    """How many executions each case has."""

    free: int = 10_000
    limit10: int = 10_000
    limit1: int = 1_000
    lanes: int = 5_000
    events: int = 5_000
    latency: int = 200
    processes: int = 200
    one_by_one: int = 300
    at_once: int = 2_000
    bulk: int = 5_000


QUICK: Final = Sizes(
    free=2_000,
    limit10=1_000,
    limit1=100,
    lanes=1_000,
    events=1_000,
    latency=50,
    processes=50,
    one_by_one=100,
    at_once=500,
    bulk=2_000,
)
_WARM: Final = 500


@dataclass(frozen=True)
class Pair:
    """One profile's installations."""

    free: Installation
    limited: Installation

    @property
    def profile(self) -> str:
        return self.free.profile


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case | Gauge]]:
    sizes = QUICK if quick else Sizes()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgresql = stack.enter_context(PostgreSQL())
        rabbitmq = stack.enter_context(RabbitMQ())
        alone = await embedded_pair(stack, folder)
        apart = await servers_pair(stack, folder, postgresql, rabbitmq)
        found: list[Case | Gauge] = []
        for pair in (alone, apart):
            found += [*throughput(pair, sizes), latency_gauge(pair, sizes)]
            found += [*_other(pair, sizes), _loaded(pair, sizes)]
        found += _starts(alone.profile, await _embedded_starts(folder))
        beside = footprint.Starts([*apart.free.roles], apart.free.variables)
        found += [*_starts(apart.profile, beside), *_commands(alone.free)]
        yield found


async def embedded_pair(stack: AsyncExitStack, folder: Path) -> Pair:
    return await _warmed(
        Pair(
            await stack.enter_async_context(embedded(folder / "embedded-free", FREE_CAPACITY)),
            await stack.enter_async_context(embedded(folder / "embedded-10", LIMITED_CAPACITY)),
        )
    )


async def servers_pair(
    stack: AsyncExitStack, folder: Path, postgresql: PostgreSQL, rabbitmq: RabbitMQ
) -> Pair:
    async def one(name: str, capacity: int) -> Installation:
        made = servers(folder / name, capacity, postgresql, rabbitmq)
        return await stack.enter_async_context(made)

    return await _warmed(
        Pair(await one("servers-free", FREE_CAPACITY), await one("servers-10", LIMITED_CAPACITY))
    )


async def _warmed(pair: Pair) -> Pair:
    await loads.add_limit(pair.limited)
    for installation in (pair.free, pair.limited):
        await loads.run_action(installation, loads.NOOP, _WARM)
    return pair


def throughput(pair: Pair, sizes: Sizes) -> list[Case]:
    """Those that peers have, too."""
    limited = partial(loads.run_limited, pair.limited)
    return [
        Case(
            f"{pair.profile}: free",
            lambda: loads.run_action(pair.free, loads.NOOP, sizes.free),
        ),
        Case(f"{pair.profile}: limit 10", lambda: limited(10, sizes.limit10)),
        Case(f"{pair.profile}: limit 1", lambda: limited(1, sizes.limit1)),
    ]


def latency_gauge(pair: Pair, sizes: Sizes) -> Gauge:
    return Gauge(
        f"{pair.profile}: idle latency",
        MILLISECONDS,
        lambda: latency.pushed(pair.free, sizes.latency),
    )


def _other(pair: Pair, sizes: Sizes) -> list[Case | Gauge]:
    free, name = pair.free, pair.profile
    taken = partial(submissions.submitted, free)
    action = partial(loads.run_action, pair.limited)
    return [
        Gauge(
            f"{name}: idle latency by client.wait",
            MILLISECONDS,
            lambda: latency.waited(free, sizes.latency),
        ),
        Case(f"{name}: 1,000 lanes", lambda: loads.run_lanes(pair.limited, sizes.lanes)),
        Case(f"{name}: event to finished", lambda: loads.run_events(free, sizes.events)),
        Case(f"{name}: shell actions", lambda: action(SHELL, sizes.processes)),
        Case(f"{name}: python actions", lambda: action(PYTHON, sizes.processes)),
        Case(f"{name}: python, reuse", lambda: action(REUSED, sizes.processes * 5)),
        Case(f"{name}: submit one by one", lambda: taken(submissions.one_by_one, sizes.one_by_one)),
        Case(f"{name}: submit 32 at once", lambda: taken(submissions.many_at_once, sizes.at_once)),
        Case(f"{name}: submit in bulk", lambda: taken(submissions.in_bulk, sizes.bulk)),
    ]


def _loaded(pair: Pair, sizes: Sizes) -> Gauge:
    return Gauge(
        f"{pair.profile}: memory loaded",
        MEGABYTES,
        lambda: footprint.loaded_memory(pair.free, sizes.free),
    )


def _starts(profile: str, starts: footprint.Starts) -> list[Gauge]:
    return [
        Gauge(f"{profile}: start", MILLISECONDS, starts.times),
        Gauge(f"{profile}: memory idle", MEGABYTES, starts.memory),
    ]


async def _embedded_starts(folder: Path) -> footprint.Starts:
    """In a folder that has its database already, and that nobody else uses."""
    async with embedded(folder / "embedded-start", LIMITED_CAPACITY) as made:
        return footprint.Starts(["up"], made.variables)


def _commands(installation: Installation) -> list[Gauge]:
    run = partial(footprint.command, installation)
    return [
        Gauge("attune --version", MILLISECONDS, lambda: run("--version")),
        Gauge("attune run core.noop", MILLISECONDS, lambda: run("run", loads.NOOP)),
    ]
