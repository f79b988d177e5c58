"""What becomes of an execution whose worker is lost. Pure."""

from attune.catalog.model import ActionDefinition
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Fate, Held


def fate_of(held: Held, definition: ActionDefinition) -> Fate:
    """What was not seen to run goes to another worker; what ran does while it has attempts left.

    An action that says `on_worker_lost: fail` must never run twice, so for it even a start that nobody saw counts.
    """
    if held.status is ExecutionStatus.CANCELING:
        return Fate.CANCELLED
    if definition.on_worker_lost != "retry":
        return Fate.ABANDONED
    if held.status is ExecutionStatus.SCHEDULED or held.attempt <= definition.max_retries:
        return Fate.AGAIN
    return Fate.ABANDONED
