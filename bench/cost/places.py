"""Which functions are which stage of an execution's way."""

from collections.abc import Callable
from typing import Any, Final

STAGES: Final = (
    ("attune.pipeline.queues.arranging:Arranger.place", "place"),
    ("attune.pipeline.queues.steps:Lanes.join", "join"),
    ("attune.pipeline.queues.steps:Lanes.leave", "leave"),
    ("attune.pipeline.queues.steps:Lanes.save", "save the lanes"),
    ("attune.pipeline.scheduling.steps:Scheduler.assign", "assign"),
    ("attune.pipeline.scheduling.steps:Scheduler.assign_to", "assign"),
    ("attune.pipeline.outbox:Outbox._send", "outbox"),
    ("attune.pipeline.processors.processor:Processor.handle", "listen"),
    ("attune.pipeline.processors.processor:Processor._process", "listen"),
    ("attune.worker.service:WorkerService.handle", "worker listens"),
    ("attune.worker.intake:Intake.begin", "hand-off read"),
    ("attune.worker.jobs:Jobs._at_once", "run"),
    ("attune.worker.jobs:Jobs._do", "run"),
    ("attune.worker.reports:Reports._complete", "complete"),
)

_OF_STEPS: Final = {
    "_request_step": "accept",
    "_schedule_step": "assign",
    "hand_offs": "hand-off read",
    "_complete_step": "complete",
    "ready_executions": "listen",
}


def stage_of_step(step: Callable[..., Any]) -> str:
    """A step without a place on the way goes by its own name."""
    return _OF_STEPS.get(step.__name__, f"step {step.__qualname__}")
