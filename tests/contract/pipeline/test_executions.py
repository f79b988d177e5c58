"""A request becomes a finished execution."""

import asyncio

import pytest

from attune.kernel.errors import Conflict, InvalidInput, NotFound
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


async def test_a_request_runs_to_its_end(world: World) -> None:
    execution = await world.run("core.echo", message="hi")
    ended = await world.ended(execution.id)
    assert ended.status is S.COMPLETED
    assert ended.result is not None
    assert (ended.result["stdout"], ended.result["succeeded"]) == ("hi\n", True)
    assert ended.started_at is not None
    assert ended.updated >= ended.started_at >= ended.created
    assert ended.worker is not None
    assert await world.value(int, "SELECT count(*) FROM entry") == 0


async def test_where_the_stages_are_apart_messages_carry_it_on(apart: World) -> None:
    execution = await apart.run("core.echo", message="hi")
    assert (await apart.ended(execution.id)).status is S.COMPLETED


async def test_an_action_that_fails_ends_as_failed_with_its_error(world: World) -> None:
    execution = await world.run("core.noop", exit_code=3)
    ended = await world.ended(execution.id)
    assert ended.status is S.FAILED
    assert ended.failure == "failed"
    assert ended.result is not None
    assert ended.result["exit_code"] == 3
    assert ended.result["error"]


async def test_an_action_that_takes_too_long_ends_as_timeout(world: World) -> None:
    request = Request(action_ref="core.sleep", parameters={"seconds": 60}, timeout_seconds=0.2)
    [execution] = await world.flow.request(Order((request,)))
    ended = await world.ended(execution.id)
    assert ended.status is S.TIMEOUT
    assert ended.result is not None
    assert "timed out" in ended.result["error"]


async def test_an_action_that_takes_a_while_is_seen_to_run(world: World) -> None:
    execution = await world.run("core.sleep", seconds=1.5)

    async def running() -> bool:
        return (await world.execution(execution.id)).status is S.RUNNING

    await eventually(running)
    assert (await world.ended(execution.id)).status is S.COMPLETED


async def test_an_unknown_action_is_refused_and_nothing_is_made(world: World) -> None:
    with pytest.raises(NotFound, match=r"core\.nothing"):
        await world.run("core.nothing")
    assert await world.value(int, "SELECT count(*) FROM execution") == 0


async def test_a_parameter_of_the_wrong_type_is_refused_by_its_name(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        await world.run("core.sleep", seconds="long")
    assert "seconds" in str(refused.value)
    assert await world.value(int, "SELECT count(*) FROM execution") == 0


async def test_a_bad_request_in_an_order_refuses_the_whole_order_and_no_other(world: World) -> None:
    good = Request(action_ref="core.noop")
    bad = Request(action_ref="core.sleep", parameters={"seconds": "long"})
    refused, accepted = await asyncio.gather(
        world.flow.request(Order((good, bad), field="executions")),
        world.flow.request(Order((good, good), field="executions")),
        return_exceptions=True,
    )
    assert isinstance(refused, InvalidInput)
    assert "executions.1.parameters.seconds" in str(refused)
    assert isinstance(accepted, list)
    assert await world.value(int, "SELECT count(*) FROM execution") == 2


async def test_a_repeated_idempotency_key_leads_to_the_first_execution(world: World) -> None:
    request = Request(action_ref="core.noop", idempotency_key="once")
    order = Order((request,))
    answers = await asyncio.gather(*(world.flow.request(order) for _ in range(5)))
    assert len({execution.id for [execution] in answers}) == 1
    await world.ended(answers[0][0].id)
    [again] = await world.flow.request(order)
    assert again.id == answers[0][0].id
    assert await world.value(int, "SELECT count(*) FROM execution") == 1


async def test_many_executions_all_end_and_leave_no_slot_behind(world: World) -> None:
    order = Order(tuple(Request(action_ref="core.noop") for _ in range(300)))
    executions = await world.flow.request(order)
    await world.over()
    ids = [execution.id for execution in executions]
    assert ids == sorted(ids)
    counts = "SELECT count(*) FROM execution WHERE status = 'completed'"
    assert await world.value(int, counts) == 300
    lane = "SELECT active_count + queue_length FROM lane"
    assert await world.value(int, lane) == 0


async def test_an_execution_that_nobody_can_run_fails_at_once_and_says_what_was_looked_for(
    world: World,
) -> None:
    request = Request(action_ref="core.noop", worker_selector={"zone": "moon"})
    [execution] = await world.flow.request(Order((request,)))
    ended = await world.ended(execution.id)
    assert ended.status is S.FAILED
    assert ended.result is not None
    assert "no workers available" in ended.result["error"]
    assert "zone=moon" in ended.result["error"]


class TestCancel:
    async def test_what_waits_for_a_worker_ends_at_once(self, still: World) -> None:
        await still.start_worker(capacity=1)
        first = await still.run("core.sleep", seconds=60)
        second = await still.run("core.sleep", seconds=60)
        cancelled = await still.flow.cancel(second.id)
        assert cancelled.status is S.CANCELLED
        assert cancelled.result is not None
        await still.flow.cancel(first.id)
        assert (await still.ended(first.id)).status is S.CANCELLED
        assert await still.value(int, "SELECT count(*) FROM entry") == 0

    async def test_f23_what_runs_is_stopped_by_its_worker(self, world: World) -> None:
        execution = await world.run("core.sleep", seconds=60)

        async def running() -> bool:
            return (await world.execution(execution.id)).status is S.RUNNING

        await eventually(running)
        assert (await world.flow.cancel(execution.id)).status is S.CANCELING
        assert (await world.ended(execution.id)).status is S.CANCELLED

    async def test_f23_what_is_handed_over_but_not_begun_is_cancelled_without_a_start(
        self, still: World
    ) -> None:
        worker = await still.start_worker()
        service = worker._service
        assert service is not None
        await service._subscription.cancel()  # type: ignore[union-attr]
        execution = await still.run("core.sleep", seconds=60)
        assert (await still.execution(execution.id)).status is S.SCHEDULED
        for _ in range(2):
            assert (await still.flow.cancel(execution.id)).status is S.CANCELING
        await service.look()
        ended = await still.ended(execution.id)
        assert (ended.status, ended.started_at) == (S.CANCELLED, None)

    async def test_f23_what_has_ended_cannot_be_cancelled(self, world: World) -> None:
        execution = await world.run("core.noop")
        ended = await world.ended(execution.id)
        with pytest.raises(Conflict, match="completed already"):
            await world.flow.cancel(execution.id)
        assert await world.execution(execution.id) == ended

    async def test_an_execution_that_does_not_exist_cannot_be_cancelled(self, world: World) -> None:
        with pytest.raises(NotFound, match="no execution 999999"):
            await world.flow.cancel(999999)  # type: ignore[arg-type]
