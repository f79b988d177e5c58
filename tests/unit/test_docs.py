"""What the documents say is so: every key with its default, every link, every test that is named."""

import re
from pathlib import Path

import msgspec
import pytest

from attune.expressions.budget import Budget
from attune.expressions.language import compile_expression
from attune.kernel.configuration import known_variables
from attune.kernel.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+?) \|", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")
NAMED_TEST = re.compile(r"\[`?(test_\w+)`?\]\(([^)]+)\)")


def documented_settings() -> dict[str, str]:
    text = (ROOT / "docs/reference/configuration.md").read_text()
    return dict(ROW.findall(text))


def test_every_setting_is_documented_and_nothing_else() -> None:
    keys = {"ATTUNE__" + key.upper().replace(".", "__") for key in documented_settings()}
    assert keys == known_variables()


def literal_defaults() -> list[tuple[str, str]]:
    """Those that stand there as values; the others are words: made at first start, or up to the machine."""
    listed = sorted(documented_settings().items())
    return [(key, shown) for key, shown in listed if shown.startswith("`") and key != "data_dir"]


@pytest.mark.parametrize(("key", "shown"), literal_defaults())
def test_the_documented_default_is_the_real_one(key: str, shown: str) -> None:
    value: object = Settings()
    for part in key.split("."):
        value = getattr(value, part)
    words = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    assert str(words) == shown.strip("`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_guarantee_names_a_test_that_exists() -> None:
    guarantees = ROOT / "docs/guarantees.md"
    named = NAMED_TEST.findall(guarantees.read_text())
    assert named
    for name, place in named:
        source = (guarantees.parent / place).read_text()
        assert f"def {name}(" in source, f"{name} is not in {place}"


LOG_LINE = re.compile(r"^\| (`[A-Z].+?`) \| (?:info|warning|error)", re.MULTILINE)


def documented_log_lines() -> list[str]:
    text = (ROOT / "docs/operations/monitoring.md").read_text()
    return [line.strip("`") for row in LOG_LINE.findall(text) for line in row.split(", `")]


@pytest.mark.parametrize("line", documented_log_lines())
def test_every_log_line_that_is_documented_is_written_somewhere(line: str) -> None:
    sources = (path.read_text() for path in ROOT.glob("src/attune/**/*.py"))
    assert any(f'"{line}"' in source for source in sources)


EXPRESSIONS = ROOT / "docs/reference/expressions.md"
EXAMPLE = re.compile(r"^\| `(.+?)` \| `(.+?)` \|$", re.MULTILINE)


@pytest.mark.parametrize(("source", "shown"), EXAMPLE.findall(EXPRESSIONS.read_text()))
def test_every_example_of_an_expression_is_true(source: str, shown: str) -> None:
    payload = {"severity": "high", "count": 3, "tags": ["a", "b"], "zero": 0}
    value = compile_expression(source).evaluate({"event": {"payload": payload}}, Budget())
    expected = msgspec.json.decode(shown)
    assert (value, type(value)) == (expected, type(expected))
