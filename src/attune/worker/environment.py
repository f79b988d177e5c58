"""The environment of a child: a short list of what it may inherit, and what the contract adds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attune.worker.errors import CannotRun
from attune.worker.model import Run

PARAMETERS_FILE: Final = "ATTUNE_PARAMETERS_FILE"
EXECUTION: Final = "ATTUNE_EXEC_ID"

_INHERITED: Final = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inheritable(variables: Mapping[str, str]) -> dict[str, str]:
    """Nothing else of the worker's own environment reaches an action: it holds the engine's secrets."""
    kept = {
        name: value
        for name, value in variables.items()
        if name in _INHERITED or name.startswith("LC_")
    }
    return {"PATH": _USUAL_PATH, **kept}


def child_environment(
    run: Run,
    inherited: Mapping[str, str],
    parameters_file: Path | None = None,
    scratch: Path | None = None,
) -> dict[str, str]:
    """Attune's own names win over the execution's, so that a child can rely on them.

    `scratch` is where temporary files go that end with the run, unless the execution names a place itself.
    """
    for name, value in run.env_vars.items():
        if not name or "=" in name or "\0" in name + value:
            raise CannotRun(
                f"The environment variable {name!r} has a name or a value that none can have."
            )
    kept = inheritable(inherited)
    if scratch is not None:
        kept["TMPDIR"] = str(scratch)
    return {**kept, **run.env_vars, **_own(run, parameters_file)}


def _own(run: Run, parameters_file: Path | None) -> dict[str, str]:
    known = {
        "ATTUNE_ACTION": run.action.ref,
        "ATTUNE_PACK_REF": run.action.pack_ref,
        EXECUTION: str(run.execution_id),
        "ATTUNE_ARTIFACTS_DIR": str(run.artifacts_dir),
        "ATTUNE_API_URL": run.api_url,
        "ATTUNE_API_TOKEN": run.api_token,
        "ATTUNE_RULE": run.rule_ref,
        "ATTUNE_TRIGGER": run.trigger_ref,
        PARAMETERS_FILE: None if parameters_file is None else str(parameters_file),
    }
    return {name: value for name, value in known.items() if value is not None}
