"""Actions of packs through the whole flow: what runs is what was asked for."""

from pathlib import Path

from attune.catalog.loading.model import Mode
from attune.kernel.statuses import ExecutionStatus
from tests.contract.pipeline.world import World, eventually

ACTION = """
ref: tools.say
label: Say
runner_type: {runner}
entry_point: say.{ending}
output_format: json
parameters:
  word: {{type: string, required: true}}
  pin: {{type: string, secret: true}}
"""


def pack(
    folder: Path, version: str, script: str, runner: str = "shell", ending: str = "sh"
) -> Path:
    (folder / "actions").mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(f"ref: tools\nlabel: Tools\nversion: {version}\n")
    (folder / "actions" / "say.yaml").write_text(ACTION.format(runner=runner, ending=ending))
    (folder / "actions" / f"say.{ending}").write_text(script)
    return folder


async def test_a_python_action_gets_its_parameters_and_gives_data(
    world: World, tmp_path: Path
) -> None:
    script = "import json, sys\nprint(json.dumps({'got': json.load(sys.stdin)['word']}))\n"
    await world.install(pack(tmp_path / "tools", "1.0.0", script, "python", "py"))
    ended = await world.ended((await world.run("tools.say", word="hi")).id)
    assert ended.status is ExecutionStatus.COMPLETED
    assert ended.result is not None
    assert ended.result["data"] == {"got": "hi"}


async def test_f39_an_execution_runs_what_it_was_requested_with(
    world: World, tmp_path: Path
) -> None:
    await world.install(pack(tmp_path / "one", "1.0.0", "echo '{\"version\": 1}'\n"))
    await world.limit("tools.say", 0)
    old = await world.run("tools.say", word="a")
    new_files = pack(tmp_path / "two", "2.0.0", "echo '{\"version\": 2}'\n")
    await world.installer.install_folder(new_files, Mode.FORCE)
    new = await world.run("tools.say", word="b")
    await world.limit("tools.say", 1)
    await world.executor_flow.promote()
    results = [(await world.ended(one.id)).result for one in (old, new)]
    assert [result and result["data"] for result in results] == [{"version": 1}, {"version": 2}]


async def test_f25_output_that_is_not_utf8_is_kept_readable(world: World, tmp_path: Path) -> None:
    await world.install(pack(tmp_path / "tools", "1.0.0", "printf 'a\\377b\\000c'\n"))
    ended = await world.ended((await world.run("tools.say", word="x")).id)
    assert ended.status is ExecutionStatus.COMPLETED
    assert ended.result is not None
    assert ended.result["stdout"] == "a\ufffdb\ufffdc"


async def test_a_nul_in_an_actions_data_does_not_keep_it_from_ending(
    world: World, tmp_path: Path
) -> None:
    await world.install(pack(tmp_path / "tools", "1.0.0", "echo '\"a\\u0000b\\\\\\\\u0000\"'\n"))
    ended = await world.ended((await world.run("tools.say", word="x")).id)
    assert ended.status is ExecutionStatus.COMPLETED
    assert ended.result is not None
    assert ended.result["data"] == "a\ufffdb\\\\u0000"


async def test_live_output_is_kept_while_it_runs_and_goes_with_the_end(
    world: World, tmp_path: Path
) -> None:
    await world.install(pack(tmp_path / "tools", "1.0.0", "echo one; exec sleep 60\n"))
    execution = await world.run("tools.say", word="x")

    async def written() -> str | None:
        found = await world.value(str, "SELECT text FROM execution_output")
        return found if found else None

    assert await eventually(written) == "one\n"
    await world.flow.cancel(execution.id)
    await world.ended(execution.id)
    assert await world.value(int, "SELECT count(*) FROM execution_output") == 0
