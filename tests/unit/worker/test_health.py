"""What a worker answers to those who ask about its health."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from attune.kernel.errors import DatabaseUnavailable
from attune.worker.health import STARTING, Health, HealthReport, health_app


@dataclass
class Parts:
    """What a report is made of, all well."""

    name: str = "w"
    id: int = 7
    capacity: int = 10
    is_stopping: bool = False
    is_stale: bool = False
    age: float = 1.5
    connected: bool = True
    error: Exception | None = None
    jobs: list[int] = field(default_factory=lambda: [1, 2, 3])

    async def read(self, _step: Any) -> int:
        if self.error is not None:
            raise self.error
        return 1


async def report(parts: Any) -> HealthReport:
    return await Health(parts, parts, parts.jobs, parts, parts, parts).report()


async def ask(answer: HealthReport, path: str = "/health", method: str = "GET") -> tuple[int, Any]:
    sent: list[Any] = []

    async def give() -> HealthReport:
        return answer

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    await health_app(give)({"type": "http", "path": path, "method": method}, receive, send)
    body = sent[1]["body"]
    return sent[0]["status"], msgspec.json.decode(body) if body else None


async def test_a_worker_that_is_well_says_what_it_does() -> None:
    assert await ask(await report(Parts())) == (
        200,
        {
            "status": "ok",
            "worker": "w",
            "id": 7,
            "running": 3,
            "capacity": 10,
            "heartbeat_age_seconds": 1.5,
        },
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"is_stopping": True}, "the worker is stopping"),
        ({"is_stale": True, "age": 31.24}, "the last heartbeat is 31.2 s old"),
        ({"connected": False}, "the message broker is away"),
        ({"error": DatabaseUnavailable("PostgreSQL is away.")}, "PostgreSQL is away."),
        ({"error": RuntimeError("odd")}, "RuntimeError"),
    ],
)
async def test_a_worker_that_is_not_well_says_why(wrong: dict[str, Any], told: str) -> None:
    status, body = await ask(await report(Parts(**wrong)))
    assert (status, body["status"], body["problems"]) == (503, "unhealthy", [told])


async def test_everything_that_is_wrong_is_told() -> None:
    found = await report(Parts(is_stopping=True, connected=False))
    assert found.problems == ("the worker is stopping", "the message broker is away")


async def test_a_database_that_hangs_is_told_after_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attune.worker.health._PATIENCE", 0.05)
    parts = Parts()
    parts.read = lambda _step: asyncio.Event().wait()  # type: ignore[method-assign]
    assert (await report(parts)).problems == ("the database did not answer within 0.05 s",)


async def test_before_it_has_come_it_is_not_well() -> None:
    assert await ask(STARTING) == (
        503,
        {"status": "starting", "problems": ["the worker is starting"]},
    )


async def test_other_paths_and_methods_are_refused() -> None:
    assert (await ask(STARTING, path="/"))[0] == 404
    assert (await ask(STARTING, path="/health/live"))[0] == 404
    assert (await ask(STARTING, method="POST"))[0] == 405
    assert await ask(STARTING, method="HEAD") == (503, None)
