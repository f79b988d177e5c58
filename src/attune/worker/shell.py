"""Parameters as bash variables, for actions whose entrypoint is the script itself.

The variables are set by a preamble that bash reads from a file of its own and that then sources the script:
no value is on the command line or in the environment, the script's line numbers are its own, and a syntax
error cannot make bash print a line that holds a value.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from attune.worker.errors import CannotRun

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]", re.ASCII)

# Variables that bash keeps read-only, computes itself, exports, or lets change what a script means.
_RESERVED: Final = re.compile(
    r"BASH(_.*|PID|OPTS)?|(LC|LD|ATTUNE)_.*|PS\d|_|CDPATH|DIRSTACK|ENV|EPOCHREALTIME|EPOCHSECONDS|EUID|EXECIGNORE|"
    "FUNCNAME|FUNCNEST|GLOBIGNORE|GLOBSORT|GROUPS|HOME|IFS|LANG|LANGUAGE|LINENO|OLDPWD|OPTARG|OPTERR|OPTIND|PATH|"
    "PIPESTATUS|POSIXLY_CORRECT|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TIMEFORMAT|TMOUT|TMPDIR|TZ|UID"
)


def variable_name(name: str) -> str:
    """The name with `_` for what a variable's name cannot hold, and before a digit at its start."""
    plain = _NOT_IN_A_NAME.sub("_", name)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


def variable_value(name: str, value: Any) -> str:
    """A string as it is, anything else as JSON (5, true, [1,2], null)."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if "\0" in text:
        raise CannotRun(
            f"The parameter {name!r} holds a NUL character, which no variable can hold."
        )
    return text


def quoted(text: str) -> str:
    """One word for a shell, whatever the text holds."""
    return "'" + text.replace("'", "'\\''") + "'"


class Script(NamedTuple):
    """`name` becomes $0. `descriptor` is where bash finds the preamble."""

    name: str
    file: Path
    descriptor: int


def preamble(parameters: Mapping[str, Any], exported: Collection[str], script: Script) -> str:
    """What bash runs first. `exported` are the names in its environment, which keep their values.

    A variable that is exported stays so when it is assigned: a parameter of that name is delivered as
    PARAM_<NAME> only. bash has opened the preamble anew, so the script's children need not find the descriptor.
    """
    return "\n".join(
        (
            f"exec {script.descriptor}<&-",
            f"BASH_ARGV0={quoted(script.name)}",
            *(f"{name}={quoted(text)}" for name, text in _variables(parameters, exported)),
            "set -e",
            f". {quoted(str(script.file))}",
            "",
        )
    )


def _variables(
    parameters: Mapping[str, Any], exported: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Names that had to be changed come first, so that a parameter of exactly that name wins."""
    for name in sorted(parameters, key=lambda name: variable_name(name) == name):
        text = variable_value(name, parameters[name])
        own = variable_name(name)
        named = f"PARAM_{_NOT_IN_A_NAME.sub('_', name)}"
        for variable in dict.fromkeys((named.upper(), named)):
            if variable not in exported:
                yield variable, text
        if own not in exported and not _RESERVED.fullmatch(own):
            yield own, text
