"""`attune queue`, `attune why` and `attune settings`."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import yaml
from rich.console import Console

from attune.cli import queues, watching
from attune.cli.choices import Choices
from attune.cli.queue_tables import QUEUE_COLUMNS
from attune.cli.session import Session
from attune.client.queue_models import Queue
from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import MOMENT, FakeServer, action, data, execution, page, refusal

API = "/api/v1"
QUEUES = f"{API}/admin/queues"
ENTRIES = f"{API}/actions/core.echo/queue"
SETTINGS = f"{API}/admin/settings"
WHY = f"{API}/executions/7/why"


def queue(id_: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "action_ref": "core.echo",
        "group": None,
        "queue_length": 4,
        "active_count": 2,
        "ready_count": 0,
        "max_concurrent": 2,
        "paused": False,
        "reason": "concurrency",
        "policy_ref": "core.two",
        "oldest_enqueued_at": MOMENT,
        "a_field_of_tomorrow": 1,
        **more,
    }


def entry(id_: int = 7, position: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "execution": id_,
        "position": position,
        "priority": "high",
        "state": "queued",
        "reason": "concurrency",
        "enqueued_at": MOMENT,
        **more,
    }


def state(**more: Any) -> dict[str, Any]:
    own = {"action_ref": "core.echo", "group": None, "queues": 1, "paused": True}
    return {**own, "queue_length": 1, "active_count": 2, **more}


def settings(**more: Any) -> dict[str, Any]:
    names = ("max_concurrent_executions", "max_queue_length", "queue_timeout_seconds")
    effective = {**dict(zip(names, (10, 10_000, 3600.0), strict=True)), "ageing_seconds": None}
    chosen = {**dict.fromkeys(effective), **more}
    set_ones = {name: value for name, value in more.items() if value is not None}
    return {**chosen, "effective": {**effective, **set_ones}}


def interrupt(_request: httpx2.Request) -> httpx2.Response:
    raise KeyboardInterrupt


def line_of(shown: str, word: str) -> str:
    return next(line for line in shown.splitlines() if word in line)


def test_queues_are_listed_with_what_they_wait_for(attune: CommandLine, server: FakeServer) -> None:
    idle = queue(
        4, action_ref="core.noop", queue_length=0, reason=None, max_concurrent=None, ready_count=1
    )
    grouped = queue(5, group={"host": "a"}, paused=True, reason="pause")
    server.on("GET", QUEUES, page([queue(), grouped, idle]))
    shown = attune("queue", "list")
    assert shown.code == 0
    first, second, third = shown.out.splitlines()[1:]
    assert first.split()[:7] == ["core.echo", "-", "4", "0", "2/2", "concurrency", "-"]
    assert '{"host":"a"}' in second
    assert "pause" in second
    assert third.split()[:6] == ["core.noop", "-", "0", "1", "2", "worker"]
    assert [each["id"] for each in attune("queue", "list", "-o", "json").json] == [3, 5, 4]
    assert len(yaml.safe_load(attune("queue", "list", "-o", "yaml").out)) == 3


def test_queues_are_filtered(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", QUEUES, page([]))
    assert attune("queue", "list").out == "There are no queues yet.\n"
    shown = attune("queue", "list", "--action", "core.*", "--waiting")
    assert shown.out == "No queues are like that.\n"
    asked = dict(server.requests[-1].url.params)
    assert (asked["action_ref"], asked["waiting"]) == ("core.*", "true")


def test_a_queue_shows_who_waits_in_their_order(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", QUEUES, page([queue()]))
    server.on("GET", ENTRIES, page([entry(9), entry(7, 2, reason=None)]))
    shown = attune("queue", "show", "core.echo").out
    assert "core.two" in shown
    first = next(line for line in shown.splitlines() if line.split()[:1] == ["9"])
    assert first.split()[:5] == ["9", "1", "high", "queued", "concurrency"]
    found = attune("queue", "show", "core.echo", "-o", "json").json
    assert [(each["execution"], each["position"]) for each in found] == [(9, 1), (7, 2)]


def test_a_group_is_sent_as_json_and_must_be_an_object(
    attune: CommandLine, server: FakeServer
) -> None:
    groups = [queue(3, group={"host": "a"}), queue(4, group={"host": "b"}, policy_ref="core.b")]
    server.on("GET", QUEUES, page(groups))
    server.on("GET", ENTRIES, page([]))
    options = ["--group", '{"host": "a"}', "--state", "ready"]
    shown = attune("queue", "show", "core.echo", *options).out
    assert "Nothing of core.echo is ready." in shown
    assert '{"host":"a"}' in shown
    assert "core.b" not in shown
    asked = server.asked("GET", ENTRIES)[0].url.params
    assert (asked["group"], asked["state"]) == ('{"host":"a"}', "ready")
    refused = attune("queue", "show", "core.echo", "--group", "a")
    assert (refused.code, "--group" in refused.err) == (2, True)


def test_a_long_queue_is_read_no_further_than_asked(
    attune: CommandLine, server: FakeServer
) -> None:
    pages = [page([entry(n, n) for n in range(1, 3)], more=True) for _ in range(2)]
    server.on("GET", ENTRIES, *pages)
    found = attune("queue", "show", "core.echo", "-n", "2", "-o", "json").json
    assert [each["execution"] for each in found] == [1, 2]
    assert len(server.asked("GET", ENTRIES)) == 1


@pytest.mark.parametrize(
    ("word", "answer", "told"),
    [
        ("pause", state(), "The queue of core.echo is paused; 1 waits.\n"),
        (
            "resume",
            state(paused=False, queue_length=2),
            "The queue of core.echo goes on; 2 wait.\n",
        ),
        ("clear", state(cancelled=5), "The queue of core.echo is cleared: 5 cancelled.\n"),
    ],
)
def test_a_queue_is_switched(
    attune: CommandLine, server: FakeServer, word: str, answer: dict[str, Any], told: str
) -> None:
    server.on("POST", f"{ENTRIES}/{word}", data(answer))
    assert attune("queue", word, "core.echo").out == told
    same = attune("queue", word, "core.echo", "--group", '{"host": 1}', "-o", "json").json
    assert same["action_ref"] == "core.echo"
    assert server.bodies("POST", f"{ENTRIES}/{word}") == [{}, {"group": {"host": 1}}]


def test_a_mistyped_action_is_answered_with_near_ones(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/actions", page([action()]))
    for command in (["show"], ["pause"], ["resume"], ["clear", "--yes"]):
        shown = attune("queue", command[0], "core.eco", *command[1:])
        assert (shown.code, "Did you mean core.echo?" in shown.err) == (1, True)


def test_somebody_at_a_terminal_is_asked_before_a_queue_is_cleared(
    attune: CommandLine, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "is_terminal", lambda: True)
    waiting = page([entry()]).json()
    waiting["pagination"]["total_items"] = 12
    server.on("GET", ENTRIES, httpx2.Response(200, json=waiting))
    server.on("POST", f"{ENTRIES}/clear", data(state(cancelled=12)))
    refused = attune("queue", "clear", "core.echo", stdin="n\n")
    assert (refused.code, refused.out) == (1, "")
    assert "Cancel the 12 that wait for core.echo?" in refused.err
    assert server.asked("POST", f"{ENTRIES}/clear") == []
    agreed = attune("queue", "clear", "core.echo", "-o", "json", stdin="y\n")
    assert agreed.json["cancelled"] == 12
    assert len(server.asked("GET", ENTRIES)) == 2
    assert attune("queue", "clear", "core.echo", "--yes").code == 0
    assert len(server.asked("GET", ENTRIES)) == 2


def test_an_execution_is_moved_to_another_band(attune: CommandLine, server: FakeServer) -> None:
    path = f"{API}/admin/executions/7/priority"
    server.on("PUT", path, data({"id": 7, "priority": "high"}))
    shown = attune("queue", "reprioritize", "7", "HIGH")
    assert shown.out == "Execution 7 has the priority high.\n"
    assert server.bodies("PUT", path) == [{"priority": "HIGH"}]
    server.on("PUT", path, refusal(409, "Execution 7 no longer waits."))
    refused = attune("queue", "reprioritize", "7", "low")
    assert (refused.code, refused.err) == (1, "attune: Execution 7 no longer waits.\n")


def test_watching_tells_of_each_change_once_and_ends_with_an_interrupt(
    attune: CommandLine, server: FakeServer
) -> None:
    looks = [page([queue(), queue(4, action_ref="core.noop")]), page([queue(queue_length=5)])]
    server.on("GET", QUEUES, looks[0], looks[0], looks[1], page([]), interrupt)
    shown = attune("queue", "list", "--watch", "--every", "0.01")
    assert shown.code == 0
    lines = [line.split(" ", 1)[1] for line in shown.out.splitlines()]
    assert [line.split()[0] for line in lines[:3]] == [
        "action=core.echo", "action=core.noop", "action=core.echo",
    ]  # fmt: skip
    assert ["waiting=4" in line for line in lines[:3]] == [True, True, False]
    assert "waiting=5" in lines[2]
    assert lines[3] == "action=core.noop group=- is gone"
    assert lines[4] == "There are no queues yet."


def test_watching_for_a_program_is_a_document_for_each_change(
    attune: CommandLine, server: FakeServer
) -> None:
    def looks() -> None:
        server.on("GET", ENTRIES, page([entry()]), page([entry()]), page([]), interrupt)

    looks()
    options = ["queue", "show", "core.echo", "--watch", "--every", "0.01"]
    lines = attune(*options, "-o", "json").out.splitlines()
    assert [len(json.loads(line)) for line in lines] == [1, 0]
    looks()
    documents = yaml.safe_load_all(attune(*options, "-o", "yaml").out)
    assert [len(each) for each in documents] == [1, 0]


def test_watching_on_a_terminal_draws_one_table_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "Live", Drawn)
    screen = io.StringIO()
    session = Session(Choices())
    session.__dict__["console"] = Console(file=screen, force_terminal=True, width=120)
    found = [[Queue(id=3, action_ref="core.echo")], []]  # type: ignore[arg-type]

    def look() -> list[Queue]:
        if not found:
            raise KeyboardInterrupt
        return found.pop(0)

    shown = watching.Watching(session, QUEUE_COLUMNS, lambda each: each.id, empty="Nothing.")
    shown.run(look, 0.01)
    table, words = Drawn.updates
    assert table.row_count == 1
    assert words == "Nothing."


class Drawn:
    """Keeps what a screen would show."""

    updates: list[Any] = []

    def __init__(self, **_options: Any) -> None:
        self.updates.clear()

    def __enter__(self) -> "Drawn":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, drawn: Any, *, refresh: bool) -> None:
        assert refresh
        self.updates.append(drawn)


def blockers(now: datetime) -> list[dict[str, Any]]:
    return [
        {"gate": "concurrency", "text": "2 of 2 slots are taken", "policy_ref": "core.two",
         "limit": 2, "holders": [1, 2]},
        {"gate": "window", "text": "outside its hours", "until": (now + timedelta(hours=2, minutes=1)).isoformat()},
    ]  # fmt: skip


def test_why_tells_place_blockers_next_estimate_and_history(
    attune: CommandLine, server: FakeServer
) -> None:
    now = datetime.now(UTC)
    history = [
        {"reason": "pause", "since": (now - timedelta(minutes=3)).isoformat(),
         "until": (now - timedelta(minutes=2)).isoformat()},
        {"reason": "concurrency", "since": (now - timedelta(minutes=2)).isoformat(), "until": None},
    ]  # fmt: skip
    found = {
        "waiting": True, "position": 3, "first_blocker": "concurrency", "blockers": blockers(now),
        "next": "one of 1, 2 must end", "estimate": {"p50_seconds": 4, "p90_seconds": 65},
        "history": history,
    }  # fmt: skip
    server.on("GET", WHY, data(found))
    waits = execution(status="requested", priority="high")
    server.on("GET", f"{API}/executions/7", data(waits))
    shown = attune("why", "7").out
    lines = shown.splitlines()
    assert lines[0] == "Execution 7 of core.echo waits at position 3 with priority high."
    assert lines[1] == ("First in its way: concurrency: 2 of 2 slots are taken (policy core.two)")
    assert lines[2] == "What must happen next: one of 1, 2 must end"
    assert lines[3] == "It will probably start in 4.0 s; nine of ten times within 1 min 5 s."
    assert "1, 2" in line_of(shown, "2 of 2 slots are taken  ")
    assert "in 2 h" in line_of(shown, "outside its hours")
    assert "1 min 0 s" in line_of(shown, "pause ")
    assert attune("why", "7", "-o", "json").json["blockers"][0]["holders"] == [1, 2]


def test_the_first_blocker_may_be_named_as_a_whole(attune: CommandLine, server: FakeServer) -> None:
    found = blockers(datetime.now(UTC))
    why: dict[str, Callable[..., Any] | Any] = {
        "waiting": True, "position": 1, "first_blocker": found[1], "blockers": found,
    }  # fmt: skip
    server.on("GET", WHY, data(why))
    server.on("GET", f"{API}/executions/7", data(execution(status="requested")))
    shown = attune("why", "7").out
    assert "First in its way: window: outside its hours (opens in 2 h)" in shown
    assert "cannot be told yet" in shown


def test_why_says_so_when_nothing_is_waited_for(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", WHY, data({"waiting": False, "position": None, "first_blocker": None}))
    server.on("GET", f"{API}/executions/7", data(execution()))
    assert attune("why", "7").out == "Execution 7 of core.echo does not wait: it is completed.\n"
    assert attune("why", "7", "-o", "json").json["waiting"] is False
    assert attune("why", "8").code == 1


def test_settings_are_shown_as_set_and_as_in_force(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", SETTINGS, data(settings(max_queue_length=5)))
    shown = attune("settings", "show").out
    assert line_of(shown, "max_queue_length").split() == ["max_queue_length", "5", "5"]
    assert line_of(shown, "max_concurrent").split()[1:] == ["-", "10"]
    assert attune("settings", "show", "-o", "json").json["effective"]["max_queue_length"] == 5


def test_a_setting_is_set_and_brought_back_to_its_default(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on(
        "PUT", SETTINGS, data(settings(max_concurrent_executions=0)), data(settings()),
        data(settings(ageing_seconds=2.5)), data(settings()),
    )  # fmt: skip
    words = "max_concurrent_executions"
    assert attune("settings", "set", words, "0").out == f"{words} is 0.\n"
    assert attune("settings", "unset", words).out == f"{words} is 10 (the default).\n"
    json_answer = attune("settings", "set", "ageing_seconds", "2.5", "-o", "json").json
    assert json_answer["ageing_seconds"] == 2.5
    assert (
        attune("settings", "unset", "ageing_seconds").out
        == "ageing_seconds is off (the default).\n"
    )
    sent = [{words: 0}, {words: None}, {"ageing_seconds": 2.5}, {"ageing_seconds": None}]
    assert server.bodies("PUT", SETTINGS) == sent


def test_a_setting_that_is_none_and_a_value_that_is_no_number_are_misuses(
    attune: CommandLine, server: FakeServer
) -> None:
    near = attune("settings", "set", "max_queue_lenght", "5")
    assert (near.code, "Did you mean max_queue_length?" in near.err) == (2, True)
    far = attune("settings", "unset", "xyz")
    assert (far.code, "There are max_concurrent_executions" in far.err) == (2, True)
    for word in ("many", "true", '"5"', "null"):
        wrong = attune("settings", "set", "max_queue_length", word)
        assert (wrong.code, "takes a number" in wrong.err) == (2, True)
    assert server.requests == []


def test_names_of_settings_are_completed(attune: CommandLine) -> None:
    found = attune.completions("settings", "set", "max")
    assert found == ["max_concurrent_executions", "max_queue_length"]
