"""The command line against a real `attune up`, as a person on the same machine uses it."""

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import attune
from attune.client import ExecutionStatus, NotFound
from harness.waiting import wait_until
from tests.e2e.attune_process import COMMAND, AttuneProcess, run_attune

GREET = """
import json, sys
given = json.load(sys.stdin)
for _ in range(given["times"]):
    print("hello", given["name"], flush=True)
print("to the other stream", file=sys.stderr)
print(json.dumps({"greeted": given["name"]}))
"""
PACK = {
    "pack.yaml": "ref: tryout\nlabel: Tryout\nversion: 1.0.0\n",
    "actions/greet.yaml": (
        "ref: tryout.greet\nlabel: Greet\nrunner_type: python\nentry_point: greet.py\n"
        "output_format: json\nparameters:\n"
        "  name: {type: string, required: true}\n  times: {type: integer, default: 1}\n"
    ),
    "actions/greet.py": GREET,
    "actions/fail.yaml": "ref: tryout.fail\nlabel: Fail\nrunner_type: shell\nentry_point: fail.sh\n",
    "actions/fail.sh": "echo no >&2\nexit 3\n",
    "triggers/alarm.yaml": "ref: tryout.alarm\nlabel: Alarm\noutput:\n  severity: {type: string}\n",
    "rules/on_alarm.yaml": (
        "ref: tryout.on_alarm\nlabel: On alarm\ntrigger_ref: tryout.alarm\naction_ref: core.echo\n"
        "conditions: {expression: \"event.payload.severity == 'high'\"}\n"
        'action_params: {message: "{{ event.payload.severity }} alarm"}\n'
    ),
}


@dataclass(frozen=True)
class Machine:
    """A home of one's own, and the data directory of the server that runs there."""

    home: Path
    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_attune(
            *arguments,
            HOME=str(self.home),
            XDG_CONFIG_HOME="",
            ATTUNE__DATA_DIR=str(self.folder),
        )

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    home = tmp_path_factory.mktemp("home")
    folder = home / "data"
    pack = home / "tryout"
    for name, text in PACK.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(text)
    with AttuneProcess("up", "--data-dir", str(folder), "--port", "0") as process:
        process.address()
        machine = Machine(home, folder)
        assert machine.ok("pack", "install", str(pack)) == "Pack tryout 1.0.0 is installed.\n"
        yield machine
        assert process.stop() == 0
    assert not (folder / "local.json").exists()


def test_on_the_same_machine_one_is_in_without_logging_in(machine: Machine) -> None:
    assert machine.json("whoami")["login"] == "attune.local"
    shown = machine.ok("whoami")
    assert "local.json" in shown
    assert "core.admin" in shown


def test_what_the_pack_brought_is_there(machine: Machine) -> None:
    assert {"core", "tryout"} <= {each["ref"] for each in machine.json("pack", "list")}
    assert {each["ref"] for each in machine.json("action", "list", "--pack", "tryout")} == {
        "tryout.fail",
        "tryout.greet",
    }
    assert "times" in machine.ok("action", "show", "tryout.greet")
    assert machine.json("trigger", "show", "tryout.alarm")["ref"] == "tryout.alarm"
    assert machine.json("rule", "show", "tryout.on_alarm")["action_ref"] == "core.echo"
    again = machine.run("pack", "install", str(machine.home / "tryout"))
    assert again.returncode == 1
    assert "tryout" in again.stderr


def test_a_rule_is_switched_off_and_on(machine: Machine) -> None:
    assert machine.ok("rule", "disable", "tryout.on_alarm") == "Rule tryout.on_alarm is disabled.\n"
    assert machine.json("rule", "show", "tryout.on_alarm")["enabled"] is False
    assert machine.json("rule", "enable", "tryout.on_alarm")["enabled"] is True


def test_a_mistyped_ref_is_answered_with_near_ones(machine: Machine) -> None:
    for arguments in (["action", "show", "tryout.gret"], ["run", "tryout.gret"]):
        refused = machine.run(*arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "Did you mean tryout.greet?" in refused.stderr


def test_an_action_runs_is_followed_and_shows_its_result(machine: Machine) -> None:
    done = machine.run("run", "tryout.greet", "-p", "name=ann", "-p", "times=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hello ann\nhello ann\n")
    assert done.stderr == "to the other stream\n"
    assert "tryout.greet completed" in done.stdout
    assert '"greeted": "ann"' in done.stdout


def test_for_a_program_the_result_is_one_document(machine: Machine) -> None:
    found = machine.json("run", "tryout.greet", "-p", "name=bob")
    assert found["status"] == "completed"
    assert found["config"] == {"name": "bob", "times": 1}
    assert found["result"]["data"] == {"greeted": "bob"}
    assert machine.json("execution", "show", str(found["id"]))["id"] == found["id"]
    logs = machine.json("execution", "logs", str(found["id"]))
    assert logs["stdout"].startswith("hello bob\n")
    assert logs["stderr"] == "to the other stream\n"
    listed = machine.json("execution", "list", "--action", "tryout.greet", "-n", "1")
    assert [each["id"] for each in listed] == [found["id"]]


def test_one_that_fails_ends_with_one(machine: Machine) -> None:
    done = machine.run("run", "tryout.fail")
    assert done.returncode == 1
    assert "tryout.fail failed" in done.stdout
    assert "exit code 3" in done.stdout


def test_parameters_that_do_not_fit_are_refused_by_name(machine: Machine) -> None:
    refused = machine.run("run", "tryout.greet", "-o", "json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "name" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_running_one_is_cancelled(machine: Machine) -> None:
    id_ = str(machine.json("run", "core.sleep", "-p", "seconds=60", "--no-wait")["id"])
    machine.ok("execution", "cancel", id_)
    followed = machine.run("execution", "logs", id_, "--follow")
    assert followed.returncode == 0, followed.stderr
    assert machine.json("execution", "show", id_)["status"] == "cancelled"
    assert machine.run("execution", "cancel", id_).returncode == 1


def test_whoever_stops_following_is_told_that_it_goes_on(machine: Machine) -> None:
    variables = {"HOME": str(machine.home), "ATTUNE__DATA_DIR": str(machine.folder)}
    with AttuneProcess("run", "core.sleep", "-p", "seconds=60", **variables) as process:
        wait_until(lambda: bool(running(machine)), timeout=30, what="the execution")
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    [id_] = running(machine)
    assert process.log == [f"Execution {id_} goes on; `attune execution cancel {id_}` ends it."]
    machine.ok("execution", "cancel", str(id_))


def running(machine: Machine) -> list[int]:
    listed = machine.json("execution", "list", "--action", "core.sleep", "--status", "running")
    return [each["id"] for each in listed]


def test_an_event_is_told_answered_and_explained(machine: Machine) -> None:
    high = machine.json("event", "emit", "tryout.alarm", "--payload", '{"severity": "high"}')
    low = machine.json("event", "emit", "tryout.alarm", "--payload", '{"severity": "low"}')
    client = attune.Client.from_environment({"HOME": str(machine.home)}, data_dir=machine.folder)
    with client:
        [made] = _executions_of(client, high["id"])
        ended = client.executions.wait(made, timeout=30)
        assert ended.config == {"message": "high alarm"}
    shown = machine.json("event", "show", str(low["id"]))
    assert [(each["rule_ref"], each["matched"]) for each in shown["rules"]] == [
        ("tryout.on_alarm", False)
    ]
    assert shown["rules"][0]["reason"] in machine.ok("event", "show", str(low["id"]))
    [enforcement] = machine.json("enforcement", "list", "--event", str(high["id"]))
    assert str(made) in machine.ok("enforcement", "show", str(enforcement["id"]))


def _executions_of(client: attune.Client, event: int) -> list[int]:
    found: list[int] = []

    def answered() -> bool:
        for each in client.enforcements.list(event=event):
            found.extend(made.id for made in client.executions.of_enforcement(each.id))
        return bool(found)

    wait_until(answered, timeout=30, what="the rule's answer")
    return found


def test_the_client_of_this_machine_does_what_the_commands_do(machine: Machine) -> None:
    client = attune.Client.from_environment({"HOME": str(machine.home)}, data_dir=machine.folder)
    with client:
        seen: list[ExecutionStatus] = []
        asked = client.executions.execute("tryout.greet", {"name": "eve"}, idempotency_key="once")
        again = client.executions.execute("tryout.greet", {"name": "eve"}, idempotency_key="once")
        assert again.id == asked.id
        ended = client.executions.wait(asked.id, timeout=30, on_status=seen.append)
        assert ended.data == {"greeted": "eve"}
        assert seen[-1] is ExecutionStatus.COMPLETED
        assert "hello eve" in "".join(client.executions.logs(asked.id))
        with pytest.raises(NotFound):
            client.executions.wait(10**9)


async def test_the_awaited_client_as_well(machine: Machine) -> None:
    client = attune.AsyncClient.from_environment(
        {"HOME": str(machine.home)}, data_dir=machine.folder
    )
    async with client:
        asked = await client.executions.execute("tryout.greet", {"name": "eve"})
        ended = await client.executions.wait(asked.id, timeout=30)
        assert ended.succeeded
        pieces = [piece async for piece in client.executions.logs(asked.id, follow=True)]
        assert "hello eve" in "".join(pieces)


def test_the_worker_of_this_machine_is_listed(machine: Machine) -> None:
    [worker] = machine.json("worker", "list")
    assert worker["worker_role"] == "action"
    assert worker["name"] in machine.ok("worker", "list")


def test_logging_in_as_somebody_else(machine: Machine) -> None:
    local = attune.Client.from_environment({"HOME": str(machine.home)}, data_dir=machine.folder)
    with local, attune.Client(local.server) as registering:
        registering.auth.register("zoe", "open sesame")
    url = local.server.url
    done = subprocess.run(
        [COMMAND, "login", "--url", url, "--login", "zoe", "--password-stdin"],
        input="open sesame\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(machine.home)},
    )
    assert done.returncode == 0, done.stderr
    assert machine.json("whoami")["login"] == "zoe"
    assert machine.ok("logout") == f"Logged out of {url}.\n"
    assert machine.json("whoami")["login"] == "attune.local"


def test_without_a_server_the_way_to_one_is_told(tmp_path: Path) -> None:
    refused = run_attune("rule", "list", HOME=str(tmp_path), ATTUNE__SERVER__PORT="1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Cannot reach Attune at http://127.0.0.1:1 (ATTUNE__SERVER__PORT)" in refused.stderr
    assert "attune up" in refused.stderr
