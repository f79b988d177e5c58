"""A run finds a clean place with nothing of the worker's in it, and leaves one behind."""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Outcome, OutputFormat, Runtime
from attune.worker.removal import remove_tree
from tests.unit.worker.worlds import World

INLINE = "inline"
KINDS = (INLINE, Runtime.SHELL, Runtime.PYTHON, Runtime.NODE)
LINKS = {
    Runtime.SHELL: "for each in /proc/$$/fd/*; do readlink $each || true; done",
    Runtime.PYTHON: """
import os
for each in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink("/proc/self/fd/" + each))
    except FileNotFoundError:
        pass
""",
    Runtime.NODE: """
const fs = require("fs");
for (const each of fs.readdirSync("/proc/self/fd"))
    try { console.log(fs.readlinkSync("/proc/self/fd/" + each)); } catch {}
""",
}
VARIABLES = {
    Runtime.SHELL: r"tr '\0' '\n' < /proc/$$/environ",
    Runtime.PYTHON: "import os\nfor pair in os.environ.items(): print('='.join(pair))",
    Runtime.NODE: "for (const [n, v] of Object.entries(process.env)) console.log(n + '=' + v)",
}
SUFFIXES = {Runtime.SHELL: "sh", Runtime.PYTHON: "py", Runtime.NODE: "js"}
CONTRACT = {
    *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "OWN"),
    *("ATTUNE_ACTION", "ATTUNE_PACK_REF", "ATTUNE_EXEC_ID", "ATTUNE_ARTIFACTS_DIR"),
}


async def run_kind(world: World, kind: str, texts: dict[Runtime, str], **fields: object) -> Outcome:
    if kind == INLINE:
        return await world.run(texts[Runtime.SHELL], **fields)
    runtime = Runtime(kind)
    if runtime is Runtime.PYTHON:
        # Not one behind a version switcher, which adds variables.
        fields["interpreter"] = (sys.executable, "-u")
    entrypoint = world.file(f"act.{SUFFIXES[runtime]}", texts[runtime])
    return await world.run_file(runtime, entrypoint, **fields)


@pytest.fixture
def held() -> Iterator[set[str]]:
    """Descriptors of the worker's own, as /proc names them, also such as a child would inherit."""
    memory = os.memfd_create("engine", 0)
    sockets = socket.socketpair()
    pipe = os.pipe()
    descriptors = [memory, *pipe, *(each.fileno() for each in sockets)]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    yield {str(Path(f"/proc/self/fd/{descriptor}").readlink()) for descriptor in descriptors}
    for each in sockets:
        each.close()
    for descriptor in (memory, *pipe):
        os.close(descriptor)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_has_no_descriptor_of_ours(world: World, kind: str, held: set[str]) -> None:
    outcome = await run_kind(world, kind, LINKS, parameters={"a": 1})
    links = outcome.result.stdout.splitlines()
    assert len([link for link in links if link.startswith("pipe:")]) >= 2, outcome.result
    assert held.isdisjoint(links)
    assert not [link for link in links if link.startswith("socket:")]
    # Standard input, and the preamble of an inline script until bash has read it.
    assert len([link for link in links if link.startswith("/memfd:")]) <= 1 + (kind == INLINE)
    assert {link for link in links if "memfd" in link} <= {"/memfd:attune (deleted)"}


@pytest.mark.parametrize("kind", [INLINE, Runtime.SHELL, Runtime.PYTHON])
async def test_a_child_has_its_three_streams_and_what_it_opened_itself(
    world: World, kind: str, held: set[str]
) -> None:
    count = {
        Runtime.SHELL: "ls /proc/self/fd",
        Runtime.PYTHON: "import os\nfor each in os.listdir('/proc/self/fd'): print(each)",
    }
    outcome = await run_kind(world, kind, count)
    # The fourth is the one by which the folder is read.
    assert len(outcome.result.stdout.split()) == 4, outcome.result.stdout
    assert {"0", "1", "2"} < set(outcome.result.stdout.split())


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_has_no_variable_of_ours(world: World, kind: str) -> None:
    outcome = await run_kind(world, kind, VARIABLES, env_vars={"OWN": "1"})
    names = {line.partition("=")[0] for line in outcome.result.stdout.splitlines()}
    assert names >= {"OWN", "PATH", "TMPDIR", "ATTUNE_EXEC_ID"}
    assert {name for name in names - CONTRACT if not name.startswith("LC_")} == set()


@pytest.mark.parametrize("kind", KINDS)
async def test_temporary_files_have_a_place_that_goes_with_the_run(world: World, kind: str) -> None:
    leaves = {
        Runtime.SHELL: 'mktemp; mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; chmod -R a-w "$TMPDIR/a"',
        Runtime.PYTHON: "import tempfile; print(tempfile.mkstemp()[1])",
        Runtime.NODE: """
const fs = require("fs"), os = require("os");
console.log(fs.mkdtempSync(os.tmpdir() + "/x"));
""",
    }
    outcome = await run_kind(world, kind, leaves)
    file = Path(outcome.result.stdout.strip())
    (folder,) = {parent for parent in file.parents if parent.parent == world.work}
    assert file.parent == folder / "tmp"
    assert not folder.exists()
    assert world.leftovers() == []


async def test_an_execution_may_name_its_own_place_for_temporary_files(
    world: World, tmp_path: Path
) -> None:
    outcome = await world.run("mktemp", env_vars={"TMPDIR": str(tmp_path)})
    assert Path(outcome.result.stdout.strip()).parent == tmp_path


async def test_a_tree_of_any_depth_goes_with_the_run(world: World) -> None:
    text = """
import os
os.chdir(os.environ["TMPDIR"])
for n in range(3000):
    os.mkdir("a" * 20)
    os.symlink("/", "link")
    os.chdir("a" * 20)
print("done")
"""
    outcome = await world.run_file(Runtime.PYTHON, world.file("deep.py", text))
    assert outcome.result.stdout == "done\n", outcome.result
    assert outcome.status is ExecutionStatus.COMPLETED
    assert world.leftovers() == []


def test_a_tree_that_its_owner_may_not_touch_is_removed_all_the_same() -> None:
    """As a user whom the system does not let do everything."""
    top = Path(tempfile.mkdtemp())
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "b" / "file").write_text("x")
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    everything = [top, *top.rglob("*")]
    for path in reversed(everything):
        os.chown(path, user, -1)
        path.chmod(0)
    pid = os.fork()
    if pid == 0:
        os.setresuid(user, user, user)
        remove_tree(top)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not top.exists()


async def test_the_working_folder_is_still_the_pack_s(world: World) -> None:
    outcome = await world.run_file(
        Runtime.PYTHON,
        world.file("cwd.py", "import json, os; print(json.dumps([os.getcwd(), os.listdir()]))"),
        output_format=OutputFormat.JSON,
    )
    assert msgspec.convert(outcome.result.data[0], str) == str(world.pack)
