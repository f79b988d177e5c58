"""`attune worker list|show|cordon|uncordon|drain`, and what its document says of them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from attune.cli.commands import COMMANDS
from attune.cli.main import app_for
from attune.kernel.configuration import known_variables
from attune.pipeline.workers.history import WorkerEvent
from attune.pipeline.workers.model import HealthState
from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import MOMENT, FakeServer, page, plain, refusal

API = "/api/v1/workers"
DOCUMENT = Path(__file__).parents[3] / "docs/operations/workers.md"
LATER = (datetime.now(UTC) + timedelta(days=5, hours=12)).isoformat()


def worker(left: int = 3, **more: Any) -> dict[str, Any]:
    load = {
        "running": min(left, 2),
        "scheduled": max(left - 2, 0),
        "total_active": left,
        "max_concurrent_executions": 10,
    }
    return {
        "id": 8,
        "name": "w1",
        "worker_role": "action",
        "worker_type": "remote",
        "status": "active",
        "health_state": "busy",
        "host": "10.0.0.7",
        "port": 8200,
        "labels": {"zone": "a", "disk": "fast"},
        "taints": [{"key": "gpu", "value": "big", "effect": "no_schedule"}, {"key": "odd"}],
        "supported_runtimes": [
            {"name": "python", "versions": ["3.11.2", "3.12.1"]},
            {"name": "shell", "versions": ["5.2"]},
        ],
        "load": load,
        "last_heartbeat": MOMENT,
        "heartbeat_age_seconds": 4,
        "created": MOMENT,
        **more,
    }


def everything(server: FakeServer, **more: Any) -> None:
    """The worker w1, with something in each of its lists."""
    held = {"action_ref": "a.b", "status": "running", "attempt": 2, "since": MOMENT}
    lost = {"event": "lost", "at": MOMENT, "downtime_seconds": 31.5, "text": "silent"}
    server.on("GET", f"{API}/w1", plain(worker(**more)))
    server.on("GET", f"{API}/8/executions", page([{"id": 42, **held}]))
    server.on("GET", f"{API}/8/history", page([{"id": 2, **lost}, {"id": 1, **lost}]))


def test_the_list_tells_what_one_wants_to_know_first(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", API, page([worker()]))
    shown = attune("worker", "list")
    head, line = shown.out.splitlines()
    assert head.split() == [
        "ID", "NAME", "TYPE", "STATE", "LOAD", "RUNTIMES", "HEARTBEAT", "LABELS",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", line.strip()) == [
        "8", "w1", "remote", "busy", "3/10", "python 3.11.2/3.12.1, shell 5.2", "4 s ago",
        "disk=fast, zone=a",
    ]  # fmt: skip


def test_the_list_is_filtered_by_the_server(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", API, page([]))
    options = ["--state", "offline", "--status", "inactive", "--role", "action", "--not-cordoned"]
    shown = attune("worker", "list", *options)
    assert shown.out == "No workers are like that.\n"
    asked = dict(server.requests[0].url.params)
    assert (asked["health_state"], asked["status"]) == ("offline", "inactive")
    assert (asked["role"], asked["cordoned"]) == ("action", "false")
    assert attune("worker", "list").out == "No worker has come yet.\n"
    assert attune("worker", "list", "--cordoned").code == 0
    assert server.requests[-1].url.params["cordoned"] == "true"


def test_show_has_everything_about_a_worker(attune: CommandLine, server: FakeServer) -> None:
    everything(
        server,
        answered_at=MOMENT,
        asked_at=MOMENT,
        cordoned=True,
        cordon_reason="upgrade",
        cordoned_by=3,
        cordoned_by_login="ann",
        cordoned_at=MOMENT,
        set_aside=[{"action_ref": "a.c", "failures": 5, "until": LATER, "error": "no disk"}],
    )
    out = attune("worker", "show", "w1").out
    fields = _fields(out)
    assert (fields["Load"], fields["Has"]) == ("3/10", "3 executions (2 running, 1 not begun)")
    assert fields["Taints"] == "gpu=big:no_schedule, odd"
    assert fields["Health"] == "http://10.0.0.7:8200/health"
    assert (fields["Cordoned by"], fields["Cordoned because"]) == ("ann", "upgrade")
    assert fields["Answered a probe"].startswith("2026-01-01 12:00:00 UTC")
    assert fields["Owes an answer since"].startswith("2026-01-01 12:00:00 UTC")
    assert re.search(r"Has to do now\n.*\n +42 +a\.b +running +2 ", out)
    assert re.search(r"Set aside for\n.*\na\.c +5 +in 5 d +no disk", out)
    assert re.search(r"History\n.*\nlost .* 31\.5 s +- +silent", out)


def test_show_leaves_out_what_a_worker_does_not_have(
    attune: CommandLine, server: FakeServer
) -> None:
    bare: dict[str, Any] = {
        "labels": {},
        "taints": [],
        "host": None,
        "port": None,
        "supported_runtimes": [],
    }
    server.on("GET", f"{API}/w1", plain(worker(0, **bare)))
    for each in ("executions", "history"):
        server.on("GET", f"{API}/8/{each}", page([]))
    out = attune("worker", "show", "w1").out
    absent = [
        "Labels",
        "Taints",
        "Health",
        "Runtimes",
        "Cordoned",
        "Has to do",
        "Set aside",
        "Hist",
    ]
    assert [each for each in absent if each in out] == []
    assert (_fields(out)["Load"], _fields(out)["Has"]) == ("0/10", "nothing to do")


def test_as_json_show_is_the_worker_of_the_api_with_its_two_lists(
    attune: CommandLine, server: FakeServer
) -> None:
    everything(server)
    found = attune("worker", "show", "w1", "-o", "json", "--history", "1").json
    assert {name: found[name] for name in worker() if name != "load"} == {
        name: value for name, value in worker().items() if name != "load"
    }
    assert found["load"].items() >= worker()["load"].items()
    assert [each["id"] for each in found["executions"]] == [42]
    assert [(each["id"], each["downtime_seconds"]) for each in found["history"]] == [(2, 31.5)]


def test_a_worker_that_is_not_there_is_answered_with_the_names_that_are(
    attune: CommandLine, server: FakeServer
) -> None:
    for word, path in (("show", "w11"), ("cordon", "w11/cordon"), ("drain", "w11/drain")):
        method = "GET" if word == "show" else "POST"
        server.on(method, f"{API}/{path}", refusal(404, "There is no worker w11."))
        server.on("GET", API, page([worker()]))
        shown = attune("worker", word, "w11")
        assert (shown.code, shown.out) == (1, "")
        assert "There is no worker w11. Did you mean w1?" in shown.err


def test_cordon_and_uncordon_say_why_and_how_it_is_then(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{API}/w1/cordon", plain(worker(cordoned=True)))
    server.on("POST", f"{API}/w1/uncordon", plain(worker(health_state="active")))
    shown = attune("worker", "cordon", "w1", "--reason", "disk full")
    assert shown.out == ("Worker w1 is cordoned; it has 3 executions (2 running, 1 not begun).\n")
    assert server.bodies("POST", f"{API}/w1/cordon") == [{"reason": "disk full"}]
    shown = attune("worker", "uncordon", "w1", "--reason", "new disk")
    assert shown.out == "Worker w1 gets work again; it is active.\n"
    assert server.bodies("POST", f"{API}/w1/uncordon") == [{"reason": "new disk"}]
    assert attune("worker", "cordon", "w1", "-o", "json").json["cordoned"] is True


def test_drain_cordons_and_waits_until_nothing_is_left(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{API}/w1/drain", plain(worker(2, cordoned=True)))
    looks = [plain(worker(left, cordoned=True)) for left in (2, 1, 0)]
    server.on("GET", f"{API}/8", *looks)
    shown = attune("worker", "drain", "w1", "--reason", "upgrade", "--timeout", "60")
    assert (shown.code, server.bodies("POST", f"{API}/w1/drain")) == (0, [{"reason": "upgrade"}])
    assert shown.out == "Worker w1 is drained: cordoned, with nothing left to do.\n"
    assert shown.err.splitlines() == [
        "Worker w1 has 2 executions (2 running).",
        "Worker w1 has 1 execution (1 running).",
        "Worker w1 has nothing to do.",
    ]
    server.on("GET", f"{API}/8", looks[-1])
    assert attune("worker", "drain", "w1", "-o", "json").json["load"]["total_active"] == 0


def test_drain_that_takes_too_long_has_a_code_of_its_own_and_leaves_the_cordon(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{API}/w1/drain", plain(worker(2, cordoned=True)))
    server.on("GET", f"{API}/8", plain(worker(2, cordoned=True)))
    shown = attune("worker", "drain", "w1", "--timeout", "0.01", "-o", "json")
    assert (shown.code, shown.out) == (3, "")
    assert "still has 2 executions after 0.01 s. It stays cordoned." in shown.err
    assert [each.url.path for each in server.requests if each.method == "POST"] == [
        f"{API}/w1/drain"
    ]


def test_drain_without_waiting_only_cordons(attune: CommandLine, server: FakeServer) -> None:
    server.on("POST", f"{API}/w1/drain", plain(worker(1, cordoned=True)))
    shown = attune("worker", "drain", "w1", "--no-wait")
    assert (shown.code, len(server.requests)) == (0, 1)
    assert shown.out == "Worker w1 is cordoned; it has 1 execution (1 running).\n"


def test_leaving_a_drain_says_that_the_worker_stays_cordoned(
    attune: CommandLine, server: FakeServer
) -> None:
    def interrupted(_request: httpx2.Request) -> httpx2.Response:
        raise KeyboardInterrupt

    server.on("POST", f"{API}/w1/drain", plain(worker(1, cordoned=True)))
    server.on("GET", f"{API}/8", interrupted)
    shown = attune("worker", "drain", "w1")
    assert (shown.code, shown.out) == (130, "")
    assert "stays cordoned; `attune worker uncordon w1` gives it work again." in shown.err


def test_names_of_workers_are_completed(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", API, page([worker(), worker(name="w2", id=9), worker(name="other", id=10)]))
    for word in ("show", "cordon", "uncordon", "drain"):
        assert attune.completions("worker", word, "w") == ["w1", "w2"]


COMMAND = re.compile(r"attune worker ([a-z]+)((?: [^`\n|#]*)?)")
SETTING = re.compile(r"`((?:worker|executor)\.[a-z_.]+)")
VARIABLE = re.compile(r"ATTUNE__\w+")


def test_the_document_names_commands_and_options_that_exist() -> None:
    named = COMMAND.findall(DOCUMENT.read_text())
    known = {name.removeprefix("worker ") for name in COMMANDS if name.startswith("worker ")}
    assert {word for word, _rest in named} == known
    for word, rest in named:
        command = app_for(["worker", word]).registered_groups[0].typer_instance
        assert command is not None
        [found] = [each for each in command.registered_commands if each.name == word]
        assert found.callback is not None
        text = str(found.callback.__signature__)  # type: ignore[attr-defined]
        for option in re.findall(r"--(?:no-)?([a-z-]+)", rest):
            assert option.replace("-", "_") in text, (word, option)


def test_the_document_names_settings_that_exist() -> None:
    text = DOCUMENT.read_text()
    named = {"ATTUNE__" + key.upper().replace(".", "__") for key in SETTING.findall(text)}
    assert named
    assert named | set(VARIABLE.findall(text)) <= known_variables()


@pytest.mark.parametrize("word", [*HealthState, *WorkerEvent])
def test_the_document_explains_every_state_and_every_event(word: str) -> None:
    assert f"| `{word}` |" in DOCUMENT.read_text()


def _fields(text: str) -> dict[str, str]:
    """The names and values above the first gap."""
    lines = text.split("\n\n", 1)[0].splitlines()
    return dict(re.split(r"\s{2,}", each.strip(), maxsplit=1) for each in lines)
