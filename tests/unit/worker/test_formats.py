"""Standard output as data, as far as it is any."""

from typing import Any

import msgspec
import pytest

from attune.worker.formats import data_of
from attune.worker.model import OutputFormat
from tests.unit.worker.worlds import World

JSON = OutputFormat.JSON
JSONL = OutputFormat.JSONL
YAML = OutputFormat.YAML


@pytest.mark.parametrize(
    ("format_", "stdout", "data"),
    [
        (OutputFormat.TEXT, '{"a": 1}', None),
        (JSON, '{\n "a": [1,\n 2]\n}\n', {"a": [1, 2]}),
        (JSON, 'starting\n{"a": 1}\n\n', {"a": 1}),
        (JSON, '{"first": 1}\n{"last": 2}\n', {"last": 2}),
        (JSON, "0\n", 0),
        (JSON, "no data", None),
        (JSON, '{"a": 1}\nno data', None),
        (JSON, "", None),
        (JSON, "[" * 100_000, None),
        (JSONL, '{"a": 1}\n\n2\n', [{"a": 1}, 2]),
        (JSONL, "log line\n1\n", [1]),
        (JSONL, "log line\n", None),
        (JSONL, "", []),
        (YAML, "a: 1\nb: [x, 2]\n", {"a": 1, "b": ["x", 2]}),
        (
            YAML,
            "when: 2026-01-02\n3: true\ntrue: null",
            {"when": "2026-01-02", "3": True, "true": None},
        ),
        (YAML, "same: &x [1]\nagain: *x", {"same": [1], "again": [1]}),
        (YAML, "a: [", None),
        (YAML, "? [1, 2]\n: 3", None),
        (YAML, "&x [*x]", None),
        (YAML, "when: 2026-99-99", None),
        (YAML, "!!python/object/apply:os.getcwd []", None),
        (YAML, "[" * 5_000, None),
        (YAML, "a: " + "x" * 2_000_000, None),
    ],
)
def test_output_becomes_data_or_none(format_: OutputFormat, stdout: str, data: Any) -> None:
    assert data_of(stdout, format_) == data


def test_yaml_that_would_grow_without_bound_is_no_data() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert data_of("\n".join(lines), YAML) is None


@pytest.mark.parametrize("stdout", ["x: .nan", "x: !!binary aGk=", "x: !!set {a, b}"])
def test_all_data_can_be_written_as_json(stdout: str) -> None:
    assert msgspec.json.decode(msgspec.json.encode(data_of(stdout, YAML)))


async def test_data_is_in_the_result_of_a_failure_too(world: World) -> None:
    outcome = await world.run("""echo log; echo '{"step": 3}'; exit 4""", output_format=JSON)
    assert outcome.result.data == {"step": 3}
    assert outcome.result.exit_code == 4


async def test_output_without_data_fails_nothing(world: World) -> None:
    outcome = await world.run("echo nothing", output_format=JSON)
    assert outcome.result.succeeded
    assert outcome.result.data is None
