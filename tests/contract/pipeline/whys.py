"""Asking why on a bench."""

from collections.abc import Sequence
from datetime import timedelta

from attune.kernel.ids import ExecutionId
from attune.pipeline.policies.book import PolicyBook
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.enforcer import PolicyEnforcer
from attune.pipeline.why.model import History, Why
from attune.pipeline.why.steps import Explainer
from tests.contract.pipeline.bench import Bench


async def why(bench: Bench, execution: int) -> Why:
    explainer = Explainer(bench.flow.terms, bench.flow.definitions)
    return await bench.database.read(explainer.why, ExecutionId(execution), bench.clock.now())


async def told_history(bench: Bench, execution: int) -> History:
    explainer = Explainer(bench.flow.terms, bench.flow.definitions)
    return await bench.database.read(explainer.history, ExecutionId(execution), bench.clock.now())


async def gates(bench: Bench, execution: int) -> list[GateName]:
    return [each.name for each in (await why(bench, execution)).blockers]


async def waits(bench: Bench, execution: int) -> list[tuple[GateName, float, float | None]]:
    """Reason, and from when to when, in seconds since the test began."""
    begin = bench.clock.manual._start
    return [
        (
            one.reason,
            (one.since - begin).total_seconds(),
            None if one.until is None else (one.until - begin).total_seconds(),
        )
        for one in (await why(bench, execution)).history
    ]


def enforcer(bench: Bench) -> PolicyEnforcer:
    return PolicyEnforcer(bench.database, PolicyBook(), bench.flow.terms.queue, bench.clock)


def names(found: Sequence[Gate]) -> list[GateName]:
    return [each.name for each in found]


def blackout(bench: Bench, seconds: float) -> list[dict[str, str]]:
    """One that began an hour ago and ends in so many seconds."""
    now = bench.clock.now()
    begin, end = now - timedelta(hours=1), now + timedelta(seconds=seconds)
    return [{"from": begin.isoformat(), "to": end.isoformat()}]
