"""Who used the processors meanwhile: the loop, the store's threads, the rest of this process, and the servers."""

import threading
import time
from pathlib import Path
from typing import Final

import psutil

from harness.processes import processes_in
from harness.server import Server

_STORE_THREADS: Final = "attune-sqlite"


def cpu_seconds(servers: dict[str, Server]) -> dict[str, float]:
    """Since each began. To be asked on the loop's thread."""
    store = sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.ident is not None and thread.name.startswith(_STORE_THREADS)
    )
    loop = time.thread_time()
    found = {"event loop": loop, "store's threads": store}
    found["rest of the process"] = time.process_time() - loop - store
    for name, server in servers.items():
        found[name] = sum(_cpu_of(pid) for pid in processes_in(Path(server.directory)))
    return found


def _cpu_of(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def difference(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: max(seconds - before[name], 0.0) for name, seconds in after.items()}
