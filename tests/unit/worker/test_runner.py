"""Every way a run can go ends in an outcome of one shape."""

import msgspec

from attune.kernel.statuses import ExecutionStatus
from attune.worker.decide import ended
from tests.unit.worker.worlds import World


async def test_a_result_has_exactly_the_contract_s_fields(world: World) -> None:
    good = msgspec.to_builtins((await world.run("echo out; echo err >&2")).result)
    assert good.pop("duration_ms") >= 0
    assert good == {
        "exit_code": 0,
        "succeeded": True,
        "stdout": "out\n",
        "stderr": "err\n",
        "data": None,
    }
    bad = msgspec.json.decode(msgspec.json.encode((await world.run("echo no >&2; exit 3")).result))
    assert bad.pop("duration_ms") >= 0
    assert bad == {
        "exit_code": 3,
        "succeeded": False,
        "stdout": "",
        "stderr": "no\n",
        "data": None,
        "error": "no",
    }


async def test_the_error_of_a_failure_is_the_end_of_standard_error(world: World) -> None:
    outcome = await world.run("seq 100000 >&2; exit 1")
    error = str(outcome.result.error)
    assert len(error) == 2000
    assert error.endswith("99999\n100000")


async def test_a_process_that_a_signal_ended_has_a_shell_s_exit_code(world: World) -> None:
    outcome = await world.run("kill -SEGV $$")
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.exit_code == 139
    assert "SIGSEGV" in str(outcome.result.error)


def test_an_exit_code_that_is_no_signal_is_only_a_number() -> None:
    assert ended(255, None, " \n").error == "The action ended with exit code 255."


async def test_started_at_is_told(world: World) -> None:
    outcome = await world.run("true")
    assert outcome.started_at is not None
    assert outcome.started_at.tzinfo is not None


async def test_many_runs_at_once_do_not_mix(world: World) -> None:
    running = [
        world.start(f"echo {number}; exit {number}", execution_id=world.execution_id + number)
        for number in range(20)
    ]
    outcomes = [await each for each in running]
    assert [outcome.result.exit_code for outcome in outcomes] == list(range(20))
    assert [outcome.result.stdout for outcome in outcomes] == [f"{n}\n" for n in range(20)]
