"""The words that say how an action is run, in files and over the API."""

from collections.abc import Mapping
from typing import Final

RUNNER_WORDS: Final[Mapping[str, str]] = {
    "shell": "core.shell",
    "bash": "core.shell",
    "sh": "core.shell",
    "python": "core.python",
    "python3": "core.python",
    "node": "core.nodejs",
    "nodejs": "core.nodejs",
    "node.js": "core.nodejs",
    "native": "core.native",
    "builtin": "core.native",
}
SHELL: Final = "core.shell"
NATIVE: Final = "core.native"

DELIVERIES: Final = ("stdin", "file")
PARAMETER_FORMATS: Final = ("json", "dotenv", "yaml")
OUTPUT_FORMATS: Final = ("text", "json", "yaml", "jsonl")
ON_WORKER_LOST: Final = ("retry", "fail")
