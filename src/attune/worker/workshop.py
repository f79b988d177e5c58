"""What every job of a worker uses."""

from collections.abc import Callable
from dataclasses import dataclass

from attune.kernel.clock import Clock
from attune.pipeline.scheduling.hand_off import HandOff
from attune.worker.assembly import Places
from attune.worker.live_output import LiveOutput
from attune.worker.reports import Reports
from attune.worker.runner import Runner


@dataclass(frozen=True)
class Workshop:
    """`api_url` is where its actions find the API, once that is known; `token_for` gives each of them its token."""

    runner: Runner
    reports: Reports
    output: LiveOutput
    places: Places
    clock: Clock
    api_url: Callable[[], str | None]
    token_for: Callable[[HandOff], str | None]
