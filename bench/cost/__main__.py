"""`python -m bench.cost`: where the time of an execution goes on each profile, and what it costs in rows, commits, statements and messages."""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvloop

from attune.catalog.steps.policies import NewPolicy, create_policy
from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.telemetry.logs import configure_logs
from bench.cost.functions import as_text as functions_text
from bench.cost.functions import profiled
from bench.cost.machine import cpu_seconds, difference
from bench.cost.probes import probes, unseen
from bench.cost.show import Cost, as_json, as_text
from harness.control_plane import ControlPlane, eventually
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.server import Server

LIMITS: Final = {"free": None, "limit10": 10, "limit1": 1}
PROFILES: Final = ("embedded", "servers")
ACTION: Final = "core.noop"
_AT_ONCE: Final = 500
_WARM: Final = 100


def main() -> None:
    options = _options()
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        servers = _servers(stack) if "servers" in options.profiles else {}
        found = []
        for profile in options.profiles:
            for case in options.cases:
                cost = runner.run(_cost(folder, servers, profile, case, options))
                print(as_text(cost, options.statements), end="\n\n", flush=True)
                found.append(as_json(cost))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=LIMITS, default=[*LIMITS])
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=[*PROFILES])
    parser.add_argument("--count", type=int, default=2000, help="executions (default: 2000)")
    parser.add_argument("--capacity", type=int, help="of the worker (free: 100, else: 10)")
    parser.add_argument("--one-by-one", action="store_true", help="each waited for")
    parser.add_argument("--statements", type=int, default=12, help="how many to show (default: 12)")
    parser.add_argument("--functions", type=int, default=0, help="also profile; show so many")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


def _servers(stack: ExitStack) -> dict[str, Server]:
    return {
        "PostgreSQL": stack.enter_context(PostgreSQL()),
        "RabbitMQ": stack.enter_context(RabbitMQ()),
    }


async def _cost(
    folder: Path, servers: dict[str, Server], profile: str, case: str, options: argparse.Namespace
) -> Cost:
    """Measured on its own, then again without probes: what these cost is told, too."""
    count = options.count
    if case == "limit1" or options.one_by_one:
        count = max(count // 4, 1)
    seen = servers if profile == "servers" else {}
    capacity = options.capacity or (100 if case == "free" else 10)
    variables = _variables(folder / f"{profile}-{case}", seen)
    async with _plane(variables, capacity, LIMITS[case]) as plane:
        await _run(plane, _WARM, one_by_one=False)
        bare = await _run(plane, count, one_by_one=options.one_by_one)
        before = cpu_seconds(seen)
        with probes(plane) as ledger:
            seconds = await _run(plane, count, one_by_one=options.one_by_one)
        cpu = difference(before, cpu_seconds(seen))
        if options.functions:
            async with profiled(plane.database) as profiles:
                await _run(plane, count, one_by_one=options.one_by_one)
            print(functions_text(profiles, options.functions))
    return Cost(f"{profile}, {case}", count, bare, seconds, cpu, ledger)


def _variables(folder: Path, servers: dict[str, Server]) -> dict[str, str]:
    variables = {"ATTUNE__LOG__LEVEL": "warning", "ATTUNE__DATA_DIR": str(folder)}
    for server in servers.values():
        if isinstance(server, PostgreSQL):
            variables["ATTUNE__DATABASE__URL"] = server.create_database()
        if isinstance(server, RabbitMQ):
            variables["ATTUNE__MESSAGE_QUEUE__URL"] = server.create_vhost()
    return variables


@asynccontextmanager
async def _plane(
    variables: dict[str, str], capacity: int, limit: int | None
) -> AsyncIterator[ControlPlane]:
    settings = load_settings(variables)
    configure_logs(settings.log)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(settings))
        if limit is not None:
            await _limit(plane, limit)
        await plane.start_worker(capacity=capacity)
        await plane.start_executor()
        yield plane


async def _limit(plane: ControlPlane, limit: int) -> None:
    policy = NewPolicy(
        ref="core.noop_limit", scope_type="action", scope_ref=ACTION, concurrency_limit=limit
    )
    await plane.database.run(create_policy, policy, plane.clock.now())


async def _run(plane: ControlPlane, count: int, *, one_by_one: bool) -> float:
    """Seconds from the first request to the last end."""
    began = time.perf_counter()
    if one_by_one:
        for _ in range(count):
            await plane.flow.request(Order((Request(action_ref=ACTION),)))
            await _over(plane, interval=0)
    else:
        for start in range(0, count, _AT_ONCE):
            some = min(_AT_ONCE, count - start)
            await plane.flow.request(Order((Request(action_ref=ACTION),) * some))
        await _over(plane, interval=0.01)
    return time.perf_counter() - began


async def _over(plane: ControlPlane, interval: float) -> None:
    async def empty() -> Any:
        with unseen():
            return await plane.value(int, "SELECT 1 FROM entry LIMIT 1") is None

    await eventually(empty, timeout=120, interval=interval)


if __name__ == "__main__":
    main()
