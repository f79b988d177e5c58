"""The image, by a linter and by what the deployment relies on; a container engine is not needed."""

import json
import re
import subprocess
import sys
from pathlib import Path

from attune.kernel.configuration import known_variables

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
# Continued lines become one, as Docker reads them.
TEXT = DOCKERFILE.read_text().replace("\\\n", " ")
INSTRUCTIONS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and line[0] != "#"]


def values(instruction: str) -> list[str]:
    return [parts[1] for parts in INSTRUCTIONS if parts[0] == instruction]


def test_the_linter_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_attune_directly_and_not_as_root() -> None:
    assert json.loads(values("ENTRYPOINT")[-1]) == ["attune"]
    assert values("STOPSIGNAL") == ["SIGTERM"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", values("USER")[-1])


def test_everything_installed_is_pinned_by_hash_or_our_own() -> None:
    commands = [part for line in values("RUN") for part in line.split("&&") if "pip " in part]

    assert len(commands) == 4
    for command in commands:
        assert "--require-hashes" in command or "--no-deps" in command, command


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = [line for line in values("COPY") if not line.startswith("--from")]
    sources = {source for line in copied for source in line.split()[:-1]}

    assert sources == kept
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_variable_is_a_setting() -> None:
    assert set(re.findall(r"\bATTUNE__\w+", TEXT)) <= known_variables()
