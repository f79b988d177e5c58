"""From a request to the worker that gets it, and the reason when none does."""

from datetime import timedelta
from typing import Any

from attune.catalog.steps.actions import ActionChanges, NewAction, create_action, update_action
from attune.catalog.steps.runtimes import NewRuntime, create_runtime
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
from attune.pipeline.policies.model import GateName
from attune.pipeline.workers.model import Registration, RuntimeSupport
from attune.pipeline.workers.steps import register
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import why

NORTH, SOUTH = {"zone": "north"}, {"zone": "south"}


async def come(bench: Bench, name: str, **fields: Any) -> WorkerId:
    runtimes = [RuntimeSupport("native"), RuntimeSupport("python", ["3.11.2"])]
    defaults: dict[str, Any] = {"capacity": 10, "supported_runtimes": runtimes, "incarnation": "x"}
    new = Registration(name=name, **(defaults | fields))
    return (await bench.database.run(register, new, bench.clock.now())).id


async def alone(bench: Bench) -> None:
    """Without the worker that every bench begins with."""
    await bench.execute("UPDATE worker SET cordoned = true WHERE name = 'hand'")


async def ask(bench: Bench, ref: str = "a.one", **fields: Any) -> ExecutionId:
    [made] = await bench.order([Request(action_ref=ref, parameters={}, **fields)])
    return made.id


async def worker_of(bench: Bench, execution: ExecutionId) -> int | None:
    found: int | None = await bench.value(
        int, "SELECT worker FROM entry WHERE execution = :id", id=execution
    )
    return found


async def reason(bench: Bench, execution: ExecutionId) -> str:
    status, error = await bench.error(execution)
    assert status is ExecutionStatus.FAILED
    return error


async def define(bench: Bench, ref: str, **fields: Any) -> None:
    """Of Python, which the bench has no pack for."""
    now = bench.clock.now()
    if await bench.value(int, "SELECT 1 FROM runtime WHERE ref = 'core.python'") is None:
        python = NewRuntime(ref="core.python", name="Python")
        await bench.database.run(create_runtime, python, now)
    new = NewAction(ref=ref, pack_ref="a", label=ref, **fields)
    await bench.database.run(create_action, new, now)


async def test_a_selector_a_toleration_and_affinity_choose_the_worker(bench: Bench) -> None:
    await alone(bench)
    north = await come(bench, "north", labels=NORTH)
    south = await come(bench, "south", labels=SOUTH)
    gpu = await come(bench, "gpu", labels=SOUTH, taints=[{"key": "gpu", "effect": "no_schedule"}])
    assert await worker_of(bench, await ask(bench, worker_selector=SOUTH)) == south
    only_gpu: dict[str, Any] = {
        "worker_tolerations": [{"key": "gpu", "operator": "exists"}],
        "worker_affinity": {"preferred": [{"preference": {"match_labels": SOUTH}, "weight": 9}]},
    }
    found = {await worker_of(bench, await ask(bench, **only_gpu)) for _ in range(3)}
    assert found == {south, gpu}
    barred = {"anti_affinity": [{"match_labels": SOUTH}]}
    assert await worker_of(bench, await ask(bench, worker_affinity=barred)) == north
    either = {
        "required": [
            {"match_labels": {"zone": "moon"}},
            {"match_expressions": [{"key": "zone", "operator": "in", "values": ["north"]}]},
        ]
    }
    assert await worker_of(bench, await ask(bench, worker_affinity=either)) == north


async def test_the_action_says_it_for_all_its_executions(bench: Bench) -> None:
    await alone(bench)
    await come(bench, "north", labels=NORTH)
    south = await come(bench, "south", labels=SOUTH)
    changes = ActionChanges(worker_selector=SOUTH)
    await bench.database.run(update_action, "a.one", changes, bench.clock.now())
    assert await worker_of(bench, await ask(bench)) == south


async def test_the_version_of_a_runtime_decides(bench: Bench) -> None:
    await alone(bench)
    await come(bench, "old")
    new = await come(bench, "new", supported_runtimes=[RuntimeSupport("python", ["3.12.1"])])
    await define(bench, "a.new", runtime_ref="core.python", runtime_version_constraint=">=3.12")
    await define(bench, "a.both", required_worker_runtimes={"python3": "3.12"})
    for ref in ("a.new", "a.both"):
        assert await worker_of(bench, await ask(bench, ref)) == new


async def test_what_nobody_can_run_fails_at_once_and_says_what_is_missing(bench: Bench) -> None:
    await alone(bench)
    await come(bench, "north", labels=NORTH)
    await define(bench, "a.new", runtime_ref="core.python", runtime_version_constraint=">=3.12")
    found = await ask(bench, "a.new", worker_selector=NORTH)
    await bench.flow.schedule()
    assert await reason(bench, found) == (
        "no workers available; looked for runtime python >=3.12, label zone=north"
        " (1 active; no one has runtime python >=3.12)"
    )


async def test_an_execution_that_waits_is_told_which_need_nobody_meets(bench: Bench) -> None:
    patient = bench.new_flow("patient", through=True, no_worker_grace=timedelta(hours=1))
    [made] = await bench.order(
        [Request(action_ref="a.one", parameters={}, worker_selector={"zone": "moon"})], patient
    )
    told = await why(bench, made.id)
    assert [each.name for each in told.blockers] == [GateName.WORKER]
    assert told.blockers[0].text == "a worker with label zone=moon is not there (1 active)"
    assert told.next == "a worker with label zone=moon must come"


async def test_an_execution_that_waits_is_told_who_is_full_and_who_is_set_aside(
    bench: Bench,
) -> None:
    await alone(bench)
    full = await come(bench, "full", capacity=1)
    bad = await come(bench, "bad", capacity=9)
    until = bench.clock.now() + timedelta(seconds=60)
    await set_aside(bench, bad, until=until)
    first, second = await ask(bench), await ask(bench)
    assert (await worker_of(bench, first), await worker_of(bench, second)) == (full, None)
    told = await why(bench, second)
    [gate] = told.blockers
    assert gate.text == (
        "1 worker can run it, with 1 of at most 1; 1 worker is set aside for a.one"
        " (until 2026-01-01T00:01:00Z)"
    )
    assert (gate.until, gate.holders) == (until, (first,))
    assert told.next == (
        "a worker must get free: the one execution that such workers have must end:"
        f" {first}; or one that is set aside gets another chance at 2026-01-01T00:01:00Z"
    )
    bench.step(60)
    await bench.flow.schedule()
    assert await worker_of(bench, second) == bad


async def test_if_all_are_set_aside_they_are_used_and_that_is_told(bench: Bench) -> None:
    await alone(bench)
    bad = await come(bench, "bad", capacity=1)
    await set_aside(bench, bad, until=bench.clock.now() + timedelta(seconds=60))
    first, second = await ask(bench), await ask(bench)
    assert await worker_of(bench, first) == bad
    [gate] = (await why(bench, second)).blockers
    assert gate.text.endswith(
        "all that can are set aside for a.one (the first until 2026-01-01T00:01:00Z),"
        " and get it all the same"
    )
    assert gate.until is None


async def set_aside(bench: Bench, worker: WorkerId, **fields: Any) -> None:
    await bench.execute(
        """INSERT INTO worker_setback (worker, action_ref, failures, since, first_execution, until)
           VALUES (:worker, 'a.one', 5, :now, 1, :until)""",
        worker=worker,
        now=bench.clock.now(),
        **fields,
    )
