"""What a dead letter means for the execution that it was about: a hand-off that nobody read is an attempt that failed."""

import structlog

from attune.bus.dead_letters import DeadLetter
from attune.bus.outcome import Reason
from attune.bus.topology import WORKER_QUEUES
from attune.kernel.envelope import decode
from attune.kernel.errors import BadMessage
from attune.kernel.messages import ExecutionScheduled
from attune.pipeline.flow import Flow

_log = structlog.get_logger()


class DeadLetterHandler:
    """Safe in any number of executors, and for letters that come twice: the rows say whether there is anything to do."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    async def handle(self, letter: DeadLetter) -> None:
        if letter.reason is not Reason.EXPIRED or not letter.queue.startswith(WORKER_QUEUES):
            return
        try:
            items = decode(letter.body).items
        except BadMessage:
            return
        attempts = {
            item.execution_id: item.attempt
            for item in items
            if isinstance(item, ExecutionScheduled)
        }
        if attempts and (ended := await self._flow.fail_expired(attempts)):
            _log.warning(
                "Ended attempts whose message expired in a worker's queue.",
                executions=ended,
                queue=letter.queue,
            )
