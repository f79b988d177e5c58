"""The client sends what is said of retries and limits, and reads it back."""

from tests.unit.client.conftest import Caller
from tests.unit.client.fake import FakeServer, action, data, execution

RETRY = {"delay": 2.0, "backoff": "linear", "on": ["failed"]}


async def test_an_execution_is_asked_for_with_its_own_retries(
    caller: Caller, server: FakeServer
) -> None:
    path = "/api/v1/executions/execute"
    server.on("POST", path, data(execution(max_retries=3, retry=RETRY), 201))
    made = await caller.call(
        caller.client.executions.execute, "core.echo", max_retries=3, retry=RETRY
    )
    assert (made.max_retries, made.retry) == (3, RETRY)
    [body] = server.bodies("POST", path)
    assert (body["max_retries"], body["retry"]) == (3, RETRY)


async def test_an_action_is_given_limits_and_freed_of_them(
    caller: Caller, server: FakeServer
) -> None:
    path = "/api/v1/actions/core.echo"
    limits = {"memory_mb": 64}
    server.on("PUT", path, data(action(retry=RETRY, limits=limits, reuse=True)), data(action()))
    update = caller.client.actions.update
    changed = await caller.call(update, "core.echo", retry=RETRY, limits=limits, reuse=True)
    assert (changed.retry, changed.limits, changed.reuse) == (RETRY, limits, True)
    freed = await caller.call(update, "core.echo", retry=None, limits=None)
    assert (freed.retry, freed.limits, freed.reuse) == (None, None, False)
    assert server.bodies("PUT", path) == [
        {"retry": RETRY, "limits": limits, "reuse": True},
        {"retry": None, "limits": None},
    ]
