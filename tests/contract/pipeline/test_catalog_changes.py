"""What was changed in the catalog holds from the next request on, also in a process that was warm before."""

import asyncio

import pytest

from attune.catalog.steps.actions import ActionChanges, NewAction, create_action, delete_action
from attune.catalog.steps.actions import update_action as update
from attune.catalog.steps.policies import (
    NewPolicy,
    PolicyChanges,
    create_policy,
    delete_policy,
    update_policy,
)
from attune.kernel.errors import Conflict, InvalidInput, NotFound
from tests.contract.pipeline.bench import PARAMETERS, Bench


class Desk:
    """Somebody else's process, which changes the catalog and tells nobody."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def action(self, **fields: object) -> None:
        changes = ActionChanges(**fields)  # type: ignore[arg-type]
        await self._bench.database.run(update, "a.one", changes, self._bench.clock.now())

    async def new_action(self) -> None:
        new = NewAction(ref="a.one", pack_ref="a", label="again", param_schema=PARAMETERS)
        await self._bench.database.run(create_action, new, self._bench.clock.now())

    async def no_action(self) -> None:
        await self._bench.database.run(delete_action, "a.one")

    async def new_policy(self, **fields: object) -> None:
        new = NewPolicy(ref="a.policy", scope_type="action", scope_ref="a.one", **fields)  # type: ignore[arg-type]
        await self._bench.database.run(create_policy, new, self._bench.clock.now())

    async def policy(self, **fields: object) -> None:
        changes = PolicyChanges(**fields)  # type: ignore[arg-type]
        await self._bench.database.run(update_policy, "a.policy", changes, self._bench.clock.now())

    async def no_policy(self) -> None:
        await self._bench.database.run(delete_policy, "a.policy")


@pytest.fixture
async def desk(bench: Bench) -> Desk:
    """The flow has been asked for what is changed then."""
    await bench.ask(count=2)
    return Desk(bench)


async def test_an_action_that_was_disabled_is_refused_and_one_that_is_enabled_again_is_not(
    bench: Bench, desk: Desk
) -> None:
    await desk.action(enabled=False)
    before = await bench.values(int, "SELECT id FROM execution")
    with pytest.raises(Conflict):
        await bench.ask()
    assert await bench.values(int, "SELECT id FROM execution") == before
    await desk.action(enabled=True)
    [one] = await bench.ask()
    assert one in await bench.in_hand("a.one")


async def test_an_action_that_was_changed_is_run_as_it_is_now(bench: Bench, desk: Desk) -> None:
    required = {**PARAMETERS, "customer": {"type": "string", "required": True}}
    await desk.action(param_schema=required, timeout_seconds=7)
    with pytest.raises(InvalidInput):
        await bench.ask()
    [one] = await bench.ask(customer="x")
    assert (await bench.execution(one)).timeout_seconds == 7


async def test_an_action_that_is_gone_is_not_found_and_one_that_came_again_is_another(
    bench: Bench, desk: Desk
) -> None:
    await desk.no_action()
    with pytest.raises(NotFound):
        await bench.ask()
    await desk.new_action()
    [one] = await bench.ask()
    sql = "SELECT id FROM action WHERE ref = 'a.one'"
    assert (await bench.execution(one)).action == await bench.value(int, sql)


async def test_a_first_policy_its_change_and_its_end_bind_the_next_request(
    bench: Bench, desk: Desk
) -> None:
    await desk.new_policy(concurrency_limit=3)
    third, fourth = await bench.ask(count=2)
    assert await bench.waiting() == [fourth]
    await desk.policy(concurrency_limit=4)
    [fifth] = await bench.ask()
    assert fourth in await bench.in_hand("a.one")
    assert await bench.waiting() == [fifth]
    await desk.no_policy()
    [sixth] = await bench.ask()
    assert await bench.waiting() == []
    assert {third, fourth, fifth, sixth} <= set(await bench.in_hand("a.one"))


async def test_a_limit_by_group_binds_the_next_request(bench: Bench, desk: Desk) -> None:
    await desk.new_policy(concurrency_limit=1)
    await desk.policy(concurrency_parameters=["customer"])
    first, second = await bench.ask(count=2, customer="x")
    [other] = await bench.ask(customer="y")
    assert {first, other} <= set(await bench.in_hand("a.one"))
    assert await bench.waiting() == [second]


async def test_requests_of_many_at_once_meet_a_change_between_them(
    bench: Bench, desk: Desk
) -> None:
    """Each is answered under the catalog as it is when it is taken; the log proves the limits at the end."""
    flows = [bench.new_flow(f"f{number}", through=True) for number in range(3)]
    for flow in flows:
        await bench.ask(flow=flow)
    held = len(await bench.in_hand("a.one"))
    await desk.new_policy(concurrency_limit=held)
    asked = await asyncio.gather(*(bench.ask(flow=flow, count=3) for flow in flows))
    assert sorted(await bench.waiting()) == sorted(one for some in asked for one in some)
