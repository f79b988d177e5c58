"""What the engine itself writes into the decision log proves that order and limits held."""

from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues.decision_queries import (
    Cursor,
    LoggedDecision,
    WantedDecisions,
    decision_page,
)
from attune.pipeline.queues.decisions import Decision, decoded
from attune.pipeline.queues.verify import Proof, Replay
from tests.contract.pipeline.world import World

BANDS = (Priority.LOW, Priority.CRITICAL, Priority.NORMAL)


async def proved(world: World) -> Proof:
    replay = Replay()
    after: Cursor | None = None
    while True:
        page = await world.database.read(decision_page, WantedDecisions(), after, 7)
        for row in page.rows:
            replay.feed(_decision(row))
        if page.next is None:
            return replay.proof()
        after = page.next


def _decision(row: LoggedDecision) -> Decision:
    own = {name: getattr(row, name) for name in Decision.__struct_fields__}
    return Decision(**{**own, "items": decoded(row.items)})


async def run_some(world: World) -> None:
    """Two actions, mixed bands, limits that change while others wait."""
    requests = [
        Request(action_ref=ref, priority=band)
        for ref in ("core.noop", "core.echo")
        for band in BANDS * 4
    ]
    await world.limit("core.noop", 1)
    await world.flow.request(Order(tuple(requests)))
    await world.limit("core.noop", 3)
    await world.executor_flow.promote()
    await world.flow.request(Order(tuple(requests)))
    await world.over()


async def test_the_log_of_the_engine_is_proved_from_its_first_decision_on(world: World) -> None:
    await run_some(world)
    proof = await proved(world)
    assert proof.violation is None
    assert (proof.lanes, proof.partial_lanes) == (2, 0)
    assert (proof.admissions, proof.executions) == (48, 48)


async def test_a_log_that_was_changed_afterwards_is_not_proved(world: World) -> None:
    await run_some(world)
    lane = await world.value(int, "SELECT id FROM lane WHERE action_ref = 'core.noop'")
    last = await world.value(int, "SELECT max(number) FROM decision WHERE lane = :lane", lane=lane)
    await world.execute(
        "DELETE FROM decision WHERE lane = :lane AND number = :number", lane=lane, number=last - 1
    )
    violation = (await proved(world)).violation
    assert violation is not None
    assert (violation.lane, violation.number) == (lane, last)
    assert f"decision {last - 1} of this lane before it is missing" in violation.text
