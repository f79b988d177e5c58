"""What the end of a process or of a native action means."""

import signal
from typing import Any, Final

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Finish, Stop

_END_OF_STDERR: Final = 2000
_SIGNALLED: Final = 128


def failed(error: str, exit_code: int | None = None, data: Any = None) -> Finish:
    return Finish(status=ExecutionStatus.FAILED, exit_code=exit_code, data=data, error=error)


def stopped(stop: Stop, timeout: float | None, exit_code: int | None = None) -> Finish:
    """Only here do the words "timed out" appear: clients tell a limit from a failure by them."""
    match stop:
        case Stop.CANCELLED:
            return Finish(
                status=ExecutionStatus.CANCELLED,
                exit_code=exit_code,
                error="The action was cancelled.",
            )
        case Stop.TIMEOUT:
            return Finish(
                status=ExecutionStatus.TIMEOUT,
                exit_code=exit_code,
                error=f"The action timed out after {timeout:g} s.",
            )


def ended(exit_code: int | None, data: Any, stderr: str, breach: str | None = None) -> Finish:
    """`breach` is the sentence about a limit that may have been the reason; it stands beside the action's own words."""
    if exit_code == 0:
        return Finish(status=ExecutionStatus.COMPLETED, exit_code=0, data=data)
    words = stderr.strip()[-_END_OF_STDERR:]
    if breach:
        return failed(f"{words}\n{breach}".strip(), exit_code, data)
    return failed(words or _sentence(exit_code), exit_code, data)


def _sentence(exit_code: int | None) -> str:
    if exit_code is None:
        return "The action's process could not be ended."
    if exit_code - _SIGNALLED in signal.valid_signals():
        name = signal.Signals(exit_code - _SIGNALLED).name
        return f"The action ended with exit code {exit_code} (as after {name})."
    return f"The action ended with exit code {exit_code}."
