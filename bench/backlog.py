"""What an admission costs when many wait in one lane: an end, the next one's slot, its hand-off, in one commit.

Each length has a database of its own. The memory of the process that admits is told before its backlog grows and after.
"""

import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attune.kernel.configuration import load_settings
from attune.telemetry.logs import configure_logs
from bench.measure import Case
from harness.backlog import Backlog
from harness.control_plane import ControlPlane
from harness.postgresql import PostgreSQL

LENGTHS: Final = (1_000, 10_000, 100_000, 1_000_000)
_ADMISSIONS: Final = 100


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case]]:
    lengths = LENGTHS[:3] if quick else LENGTHS
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        server = stack.enter_context(PostgreSQL())
        found: list[Case] = []
        for profile in ("PostgreSQL", "SQLite"):
            for length in lengths:
                variables = {"ATTUNE__DATA_DIR": str(folder / f"{profile}-{length}")}
                if profile == "PostgreSQL":
                    variables["ATTUNE__DATABASE__URL"] = server.create_database()
                backlog = await _backlog(stack, variables)
                found.append(await _case(profile, backlog, length, lengths[0]))
        yield found


async def _backlog(stack: AsyncExitStack, variables: dict[str, str]) -> Backlog:
    settings = load_settings({"ATTUNE__LOG__LEVEL": "warning", **variables})
    configure_logs(settings.log)
    backlog = Backlog(await stack.enter_async_context(ControlPlane(settings)))
    await backlog.open()
    return backlog


async def _case(profile: str, backlog: Backlog, length: int, shortest: int) -> Case:
    """It tells how much this process grew while the backlog did, from one round of admissions to the next."""
    await _admissions(backlog)
    before = resident()
    await backlog.grow(length)
    await backlog.settle()
    await _admissions(backlog)
    name, baseline = f"{profile}, {length:,} queued", f"{profile}, {shortest:,} queued"
    print(f"  {name}: memory {before:.1f} MB before it grew, {resident():.1f} MB after")
    return Case(name, lambda: _admissions(backlog), None if length == shortest else baseline)


async def _admissions(backlog: Backlog) -> int:
    """As many join first, so that the backlog stays as long as it is."""
    await backlog.grow(_ADMISSIONS)
    for _ in range(_ADMISSIONS):
        await backlog.admit()
    return _ADMISSIONS


def resident() -> float:
    """Megabytes that this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
