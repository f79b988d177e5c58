"""What is run, with what, and how it ended."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import msgspec

from attune.catalog.retrying import Limits
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus


class Runtime(StrEnum):
    NATIVE = "native"
    SHELL = "shell"
    PYTHON = "python"
    NODE = "node"
    OTHER = "other"


class Delivery(StrEnum):
    STDIN = "stdin"
    FILE = "file"


class ParameterFormat(StrEnum):
    JSON = "json"
    DOTENV = "dotenv"
    YAML = "yaml"


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    JSONL = "jsonl"


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


class Stop(StrEnum):
    """Why a run does not go on to its own end."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


class RunnerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`grace` is how many seconds pass between TERM and KILL; `kept_bytes` is the bound of each stream."""

    grace: float = 5.0
    kept_bytes: int = 10 * 1024 * 1024


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, as it was when the execution was requested.

    `entrypoint` is a file of the pack, or the script itself where `inline`. `interpreter` is the start of
    the command line, for an environment of the pack's own; empty means the runtime's usual one. With `reuse`
    executions of the action share a process, one after the other, where the runtime can.
    """

    ref: str
    pack_ref: str
    runtime: Runtime
    entrypoint: str = ""
    inline: bool = False
    pack_dir: Path | None = None
    interpreter: tuple[str, ...] = ()
    parameter_delivery: Delivery = Delivery.STDIN
    parameter_format: ParameterFormat = ParameterFormat.JSON
    output_format: OutputFormat = OutputFormat.TEXT
    timeout_seconds: float | None = None
    limits: Limits = Limits()
    reuse: bool = False


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of one execution.

    `secrets` are the keys delivered with the parameters, by name. `work_dir` is where each run gets a
    private folder; `artifacts_dir` is shared by all runs of a worker.
    """

    execution_id: ExecutionId
    action: Action
    artifacts_dir: Path
    work_dir: Path
    attempt: int = 1
    parameters: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    env_vars: dict[str, str] = {}
    rule_ref: str | None = None
    trigger_ref: str | None = None
    api_url: str | None = None
    api_token: str | None = None

    def __repr__(self) -> str:
        """Without parameters, keys and token: a run may end up in a log or in a traceback."""
        return f"Run(execution_id={self.execution_id}, attempt={self.attempt}, action={self.action.ref!r})"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Encodes to the contract's `result`, field by field.

    `exit_code` is a shell's: 128 + the signal's number for what a signal ended, null for what never ran.
    """

    exit_code: int | None
    duration_ms: int
    succeeded: bool
    stdout: str = ""
    stderr: str = ""
    data: Any = None
    error: str | msgspec.UnsetType = msgspec.UNSET


Ending = Literal[
    ExecutionStatus.COMPLETED,
    ExecutionStatus.FAILED,
    ExecutionStatus.TIMEOUT,
    ExecutionStatus.CANCELLED,
]


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, before its output and its duration are put beside it."""

    status: Ending
    exit_code: int | None = None
    data: Any = None
    error: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`started_at` is null where a cancel came before the start."""

    status: Ending
    result: Result
    started_at: datetime | None
