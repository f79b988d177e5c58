"""An installation whose processes are stopped in good order and come again."""

import time
from typing import NamedTuple

from tests.e2e.attune_process import AttuneProcess
from tests.e2e.installation import Installation


class Stop(NamedTuple):
    name: str
    code: int
    seconds: float


class RollingInstallation(Installation):
    """Its processes go and come again under their names."""

    def stop(self, name: str) -> Stop:
        began = time.monotonic()
        code = self.processes[name].stop()
        return Stop(name, code, time.monotonic() - began)

    def start(self, name: str) -> AttuneProcess:
        role = name.partition("-")[0]
        process = self.start_worker(name) if role == "worker" else self._start(name, role)
        process.wait_for_event("Ready.")
        return process
