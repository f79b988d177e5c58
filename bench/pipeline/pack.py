"""The pack that is measured with: a trigger, a rule that answers it, and the least that an action can be."""

from pathlib import Path
from typing import Final

TRIGGER: Final = "bench.happened"
SHELL: Final = "bench.shell"
PYTHON: Final = "bench.python"
REUSED: Final = "bench.reused"

_FILES: Final = {
    "pack.yaml": "ref: bench\nlabel: Bench\nversion: 1.0.0\n",
    "triggers/happened.yaml": f"ref: {TRIGGER}\nlabel: Happened\n",
    "rules/on_happened.yaml": (
        f"ref: bench.on_happened\nlabel: On happened\ntrigger_ref: {TRIGGER}\n"
        "conditions:\n  expression: event.payload.amount > 100\n"
        "action_ref: core.noop\naction_params:\n  amount: '{{ event.payload.amount }}'\n"
    ),
    "actions/shell.yaml": (
        f"ref: {SHELL}\nlabel: Shell\nrunner_type: shell\nentry_point: nothing.sh\n"
    ),
    "actions/nothing.sh": "true\n",
    "actions/python.yaml": (
        f"ref: {PYTHON}\nlabel: Python\nrunner_type: python\nentry_point: nothing.py\n"
    ),
    "actions/reused.yaml": (
        f"ref: {REUSED}\nlabel: Reused\nrunner_type: python\nentry_point: nothing.py\nreuse: true\n"
    ),
    "actions/nothing.py": "pass\n",
}


def write_pack(folder: Path) -> Path:
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
