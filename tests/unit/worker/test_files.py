"""Actions that are files of a pack, in each language."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Delivery, OutputFormat, ParameterFormat, Runtime
from tests.unit.worker.worlds import World

PYTHON = """
import json, sys
given = json.load(sys.stdin)
print("working on", given["name"])
print(json.dumps({"greeting": "Hello " + given["name"], "key": given["key"]}))
"""
NODE = """
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log('working on', given.name);
console.log(JSON.stringify({greeting: 'Hello ' + given.name, key: given.key}));
"""
NODE_STREAM = """
let text = '';
process.stdin.on('data', chunk => text += chunk);
process.stdin.on('end', () => console.log(JSON.stringify({length: JSON.parse(text).long.length})));
"""


@pytest.mark.parametrize(
    ("runtime", "name", "text"),
    [(Runtime.PYTHON, "greet.py", PYTHON), (Runtime.NODE, "greet.js", NODE)],
)
async def test_parameters_and_keys_come_on_standard_input(
    world: World, runtime: Runtime, name: str, text: str
) -> None:
    assert shutil.which("node"), "node must be installed: its actions are part of the product"
    outcome = await world.run_file(
        runtime,
        world.file(name, text),
        parameters={"name": "Ada", "both": 1},
        secrets={"key": "k", "both": 2},
        output_format=OutputFormat.JSON,
    )
    assert outcome.status is ExecutionStatus.COMPLETED, outcome.result.error
    assert outcome.result.data == {"greeting": "Hello Ada", "key": "k"}
    assert outcome.result.stdout.startswith("working on Ada\n")


async def test_documents_larger_than_a_pipe_arrive_whole(world: World) -> None:
    entrypoint = world.file("long.js", NODE_STREAM)
    parameters = {"long": "x" * 3_000_000}
    outcome = await world.run_file(
        Runtime.NODE, entrypoint, parameters=parameters, output_format=OutputFormat.JSON
    )
    assert outcome.result.data == {"length": 3_000_000}


async def test_an_action_need_not_read_its_input(world: World) -> None:
    entrypoint = world.file("deaf.sh", "exec <&-; echo fine")
    outcome = await world.run_file(Runtime.SHELL, entrypoint, parameters={"long": "x" * 3_000_000})
    assert outcome.result.stdout == "fine\n"


@pytest.mark.parametrize(
    ("format_", "document"),
    [
        (ParameterFormat.JSON, '{"text":"it\'s","n":1,"list":[1,2]}\n'),
        (ParameterFormat.DOTENV, "text='it'\\''s'\nn='1'\nlist='[1,2]'\n"),
        (ParameterFormat.YAML, "text: it's\nn: 1\nlist:\n- 1\n- 2\n"),
    ],
)
@pytest.mark.parametrize("delivery", Delivery)
async def test_an_action_gets_the_format_it_asked_for(
    world: World, format_: ParameterFormat, document: str, delivery: Delivery
) -> None:
    outcome = await world.run_file(
        Runtime.SHELL,
        world.file("show.sh", 'cat "${ATTUNE_PARAMETERS_FILE:-/dev/stdin}"'),
        parameters={"text": "it's", "n": 1, "list": [1, 2]},
        parameter_format=format_,
        parameter_delivery=delivery,
    )
    assert outcome.result.stdout == document


async def test_the_environment_is_cleared_to_what_the_contract_lists(world: World) -> None:
    outcome = await world.run_file(
        Runtime.PYTHON,
        world.file("env.py", "import os, json; print(json.dumps(dict(os.environ)))"),
        interpreter=(sys.executable,),
        output_format=OutputFormat.JSON,
        env_vars={"OWN": "yes", "ATTUNE_ACTION": "forged"},
        rule_ref="mypack.on_x",
        trigger_ref="mypack.x",
        api_url="http://127.0.0.1:8080",
        api_token="token",
    )
    variables = outcome.result.data
    for name in ("HOME", "LANG", "TZ", "TMPDIR", *(n for n in variables if n.startswith("LC_"))):
        variables.pop(name, None)
    assert variables.pop("PATH") == os.environ["PATH"]
    assert variables == {
        "OWN": "yes",
        "ATTUNE_ACTION": "mypack.act",
        "ATTUNE_PACK_REF": "mypack",
        "ATTUNE_EXEC_ID": str(world.execution_id),
        "ATTUNE_ARTIFACTS_DIR": str(world.artifacts),
        "ATTUNE_API_URL": "http://127.0.0.1:8080",
        "ATTUNE_API_TOKEN": "token",
        "ATTUNE_RULE": "mypack.on_x",
        "ATTUNE_TRIGGER": "mypack.x",
    }


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
async def test_a_variable_that_no_environment_can_hold_is_refused(world: World, name: str) -> None:
    outcome = await world.run("echo", env_vars={name: "x"})
    assert outcome.status is ExecutionStatus.FAILED
    assert "environment variable" in str(outcome.result.error)


async def test_artifacts_of_one_run_are_found_by_the_next(world: World) -> None:
    await world.run('echo kept > "$ATTUNE_ARTIFACTS_DIR/note"')
    outcome = await world.run('cat "$ATTUNE_ARTIFACTS_DIR/note"')
    assert outcome.result.stdout == "kept\n"


async def test_a_child_has_no_descriptors_of_ours(world: World) -> None:
    entrypoint = world.file(
        "fds.py", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    )
    outcome = await world.run_file(Runtime.PYTHON, entrypoint)
    # The last one is that of the listing itself.
    assert outcome.result.stdout == "[0, 1, 2, 3]\n"


async def test_the_entrypoint_may_lie_in_the_pack_s_root_and_runs_in_it(world: World) -> None:
    (world.pack / "root.py").write_text("import os; print(os.getcwd())")
    outcome = await world.run_file(Runtime.PYTHON, "root.py")
    assert outcome.result.stdout == f"{world.pack}\n"


@pytest.mark.parametrize("entrypoint", ["absent.py", "", ".", "lib"])
async def test_an_entrypoint_that_names_no_file_fails_with_a_sentence(
    world: World, entrypoint: str
) -> None:
    (world.pack / "lib").mkdir()
    outcome = await world.run_file(Runtime.PYTHON, entrypoint)
    assert outcome.status is ExecutionStatus.FAILED
    assert "names no file of the pack mypack" in str(outcome.result.error)
    assert outcome.result.exit_code is None


@pytest.mark.parametrize(
    "entrypoint", ["../../outside.py", "/etc/passwd", "link.py", "folder/outside.py"]
)
async def test_nothing_outside_the_pack_is_run(
    world: World, tmp_path: Path, entrypoint: str
) -> None:
    (tmp_path / "outside.py").write_text("print('escaped')")
    (world.pack / "actions" / "link.py").symlink_to(tmp_path / "outside.py")
    (world.pack / "actions" / "folder").symlink_to(tmp_path)
    outcome = await world.run_file(Runtime.PYTHON, entrypoint)
    assert outcome.status is ExecutionStatus.FAILED
    assert "leads out of the pack" in str(outcome.result.error)


async def test_a_link_inside_the_pack_is_followed(world: World) -> None:
    world.file("real.py", "print('real')")
    (world.pack / "actions" / "link.py").symlink_to("real.py")
    assert (await world.run_file(Runtime.PYTHON, "link.py")).result.stdout == "real\n"


@pytest.mark.parametrize("entrypoint", ["a\0b", "loop"])
async def test_an_entrypoint_that_cannot_be_looked_at_fails(world: World, entrypoint: str) -> None:
    (world.pack / "actions" / "loop").symlink_to("loop")
    outcome = await world.run_file(Runtime.PYTHON, entrypoint)
    assert outcome.status is ExecutionStatus.FAILED
    assert "Attune failed" not in str(outcome.result.error)


async def test_a_pack_without_a_folder_fails_with_a_sentence(world: World) -> None:
    outcome = await world.run_file(Runtime.PYTHON, "x.py", pack_dir=None)
    assert "has no folder" in str(outcome.result.error)


@pytest.mark.parametrize("name", ["no-such-interpreter", "/no/such/python"])
async def test_a_missing_interpreter_is_named(world: World, name: str) -> None:
    outcome = await world.run_file(Runtime.PYTHON, world.file("a.py", ""), interpreter=(name,))
    assert outcome.status is ExecutionStatus.FAILED
    assert repr(name) in str(outcome.result.error)


async def test_an_interpreter_that_the_system_cannot_start_fails_with_a_sentence(
    world: World,
) -> None:
    broken = world.pack / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    outcome = await world.run_file(
        Runtime.PYTHON, world.file("a.py", ""), interpreter=(str(broken),)
    )
    assert outcome.result.error == "The process could not be started: Exec format error."


async def test_a_traceback_is_the_error_of_a_failure(world: World) -> None:
    entrypoint = world.file("bad.py", "import no_such_module")
    outcome = await world.run_file(Runtime.PYTHON, entrypoint)
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.exit_code == 1
    assert str(outcome.result.error).endswith("No module named 'no_such_module'")
    assert "timed out" not in str(outcome.result.error)


async def test_output_of_a_python_action_is_live(world: World) -> None:
    entrypoint = world.file("live.py", "import time; print('ready'); time.sleep(1000)")
    running = world.start(entrypoint, runtime=Runtime.PYTHON, inline=False)
    await world.ear.hears("ready\n")
    world.cancel.set()
    assert (await running).result.stdout == "ready\n"
