"""Parameters as the bytes that an action reads, and places for them that only the child can see."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from attune.worker.errors import CannotRun
from attune.worker.model import ParameterFormat, Run
from attune.worker.shell import quoted, variable_name, variable_value


def delivered(run: Run) -> dict[str, Any]:
    """Parameters and keys in one document; what the execution names itself wins over a key of that name."""
    return {**run.secrets, **run.parameters}


def encoded(parameters: Mapping[str, Any], format_: ParameterFormat) -> bytes:
    try:
        return _text(parameters, format_)
    except UnicodeEncodeError:
        raise CannotRun("A parameter holds half of a surrogate pair, which is no text.") from None


def _text(parameters: Mapping[str, Any], format_: ParameterFormat) -> bytes:
    match format_:
        case ParameterFormat.JSON:
            return msgspec.json.encode(parameters) + b"\n"
        case ParameterFormat.DOTENV:
            return "".join(_assignment(*pair) for pair in parameters.items()).encode()
        case ParameterFormat.YAML:
            return yaml.safe_dump(
                dict(parameters), allow_unicode=True, sort_keys=False, encoding="utf-8"
            )


def _assignment(name: str, value: Any) -> str:
    return f"{variable_name(name)}={quoted(variable_value(name, value))}\n"


def memory_file(content: bytes = b"") -> int:
    """A descriptor to read the content from: never on a disk, with an end, and gone with its last reader."""
    descriptor = os.memfd_create("attune", os.MFD_CLOEXEC)
    fill(descriptor, content)
    return descriptor


def fill(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)


def private_file(path: Path, content: bytes) -> Path:
    """Readable by its owner alone from the first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path
