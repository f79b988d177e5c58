"""Inline scripts: bash with parameters as variables, and nothing of them anywhere else."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Delivery
from tests.unit.worker.worlds import World

no_nul = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
awkward = st.sampled_from(
    ["'", "''", "\\", "\n", "\n\n", "$(id)", "`id`", '"', "!", "\x01", "\x7f", "\r"]
)
values = st.lists(st.one_of(no_nul, awkward), max_size=6).map("".join)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(values, min_size=1, max_size=25))
async def test_any_string_reaches_bash_unchanged(world: World, texts: list[str]) -> None:
    names = [f"p{number}" for number in range(len(texts))]
    script = "".join(
        f'printf "%s" "${name}" > {name}\nprintf "%s" "$PARAM_{name.upper()}" > {name}_too\n'
        for name in names
    )
    outcome = await world.run(script, parameters=dict(zip(names, texts, strict=True)))
    assert outcome.status is ExecutionStatus.COMPLETED, outcome.result.error
    for name, text in zip(names, texts, strict=True):
        assert (world.pack / name).read_bytes() == text.encode()
        assert (world.pack / f"{name}_too").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("it's", "it's"),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({"a": {"b": "ü"}}, '{"a":{"b":"ü"}}'),
        ("", ""),
    ],
)
async def test_values_are_written_as_the_contract_says(world: World, value: Any, text: str) -> None:
    outcome = await world.run('printf "%s|%s" "$value" "$PARAM_VALUE"', parameters={"value": value})
    assert outcome.result.stdout == f"{text}|{text}"


async def test_names_lose_what_a_variable_cannot_have(world: World) -> None:
    parameters = {"a-b.c": 1, "9lives": 2, "größe": 3, "if": 4, "Mixed": 5}
    script = (
        "echo $a_b_c $_9lives $gr__e $if $Mixed $PARAM_A_B_C $PARAM_9LIVES $PARAM_IF $PARAM_MIXED"
    )
    outcome = await world.run(script, parameters=parameters)
    assert outcome.result.stdout == "1 2 3 4 5 1 2 4 5\n"


async def test_a_name_that_is_exact_wins_over_one_that_was_changed(world: World) -> None:
    outcome = await world.run("echo $a_b", parameters={"a_b": "exact", "a-b": "changed"})
    assert outcome.result.stdout == "exact\n"


RESERVED = [
    "PATH",
    "IFS",
    "ENV",
    "UID",
    "EUID",
    "PPID",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_VERSINFO",
    "BASH_ARGV0",
    "LD_PRELOAD",
    "HOME",
    "PWD",
    "SHLVL",
    "_",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "GROUPS",
    "FUNCNAME",
    "PS4",
    "LC_ALL",
    "LANG",
    "TMOUT",
    "OPTIND",
    "POSIXLY_CORRECT",
    "ATTUNE_ACTION",
]


async def test_names_that_mean_something_to_bash_come_as_param_only(world: World) -> None:
    script = """
    words="a b"; set -- $words; echo $# $ATTUNE_ACTION
    ls / > /dev/null
    env | grep -c hostile || true
    for name in %s; do variable="PARAM_$name"; [ "${!variable}" = hostile ] || echo missing $name; done
    """ % " ".join(RESERVED)  # noqa: UP031 - braces are bash's here
    outcome = await world.run(script, parameters=dict.fromkeys(RESERVED, "hostile"))
    assert outcome.result.stdout == "2 mypack.act\n0\n"
    assert outcome.result.stderr == ""


async def test_parameters_are_not_in_the_environment(world: World) -> None:
    script = "printenv; bash -c 'echo [$message$PARAM_MESSAGE$TOKEN]'"
    outcome = await world.run(
        script,
        parameters={"message": "m-value"},
        secrets={"TOKEN": "t-value"},
        env_vars={"OWN": "o"},
    )
    assert "-value" not in outcome.result.stdout
    assert "[]" in outcome.result.stdout
    assert "OWN=o\n" in outcome.result.stdout


async def test_a_parameter_never_becomes_exported_by_a_variable_of_its_name(world: World) -> None:
    script = 'printenv SHARED PARAM_OTHER; echo "$PARAM_SHARED"'
    outcome = await world.run(
        script,
        parameters={"SHARED": "param", "OTHER": "param"},
        env_vars={"SHARED": "env", "PARAM_OTHER": "env"},
    )
    assert outcome.result.stdout == "env\nenv\nparam\n"


async def test_a_nul_is_refused_by_the_parameter_s_name_and_not_its_value(world: World) -> None:
    outcome = await world.run("echo", parameters={"message": "hush\0hush"})
    assert outcome.status is ExecutionStatus.FAILED
    assert "'message' holds a NUL" in str(outcome.result.error)
    assert b"hush" not in msgspec.json.encode(outcome.result)


async def test_what_is_no_text_is_refused(world: World) -> None:
    outcome = await world.run("echo", parameters={"message": "\ud800"})
    assert outcome.status is ExecutionStatus.FAILED
    assert "surrogate" in str(outcome.result.error)


async def test_scripts_of_many_lines_with_here_documents_and_functions(world: World) -> None:
    script = """#!/bin/bash
# a comment
greet() {
  cat <<END
Hello $1
  indented
END
}
greet "$name"
cat <<'RAW'
$name stays
RAW
"""
    outcome = await world.run(script, parameters={"name": "Ada"})
    assert outcome.result.stdout == "Hello Ada\n  indented\n$name stays\n"


async def test_the_first_failure_ends_the_script_with_its_code(world: World) -> None:
    outcome = await world.run("echo one\n(exit 7)\necho two")
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.exit_code == 7
    assert outcome.result.stdout == "one\n"
    assert outcome.result.error == "The action ended with exit code 7."


async def test_messages_name_the_action_and_the_script_s_own_line(world: World) -> None:
    outcome = await world.run("echo $0\n\nmissing_command", parameters={"a": "1\n2\n3"})
    assert outcome.result.stdout == "mypack.act\n"
    assert "mypack.act: line 3: missing_command: command not found" in str(outcome.result.error)


async def test_a_syntax_error_shows_no_parameter(world: World) -> None:
    outcome = await world.run("if then fi", parameters={"password": "hunter2"})
    assert outcome.result.exit_code == 2
    assert "hunter2" not in outcome.result.stderr


async def test_standard_input_holds_the_document_and_has_an_end(world: World) -> None:
    outcome = await world.run("cat; cat", parameters={"a": [1], "b": "x\ny"})
    assert outcome.result.stdout == '{"a":[1],"b":"x\\ny"}\n'


async def test_an_inline_script_has_no_descriptors_of_ours(world: World) -> None:
    outcome = await world.run("ls /proc/self/fd | wc -l; ls -l /proc/self/fd", parameters={"a": 1})
    # 0, 1, 2 and the one by which ls reads the folder.
    assert outcome.result.stdout.startswith("4\n"), outcome.result.stdout


async def test_the_working_folder_is_the_pack_s_or_one_that_goes_away(
    world: World, tmp_path: Path
) -> None:
    assert (await world.run("pwd")).result.stdout == f"{world.pack}\n"
    outcome = await world.run("pwd; ls -A; touch left", pack_dir=tmp_path / "absent")
    folder = outcome.result.stdout.strip()
    assert folder.startswith(f"{world.work}/")
    assert not Path(folder).exists()
    assert world.leftovers() == []


async def test_parameters_may_come_in_a_file(world: World) -> None:
    outcome = await world.run(
        'cat "$ATTUNE_PARAMETERS_FILE"; stat -c %a "$ATTUNE_PARAMETERS_FILE"; cat; echo $a',
        parameters={"a": 5},
        parameter_delivery=Delivery.FILE,
    )
    assert outcome.result.stdout == '{"a":5}\n400\n5\n'
    assert world.leftovers() == []
