"""Which workers are set aside now, and for what."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import WorkerId
from attune.pipeline.scheduling.decide import Setback
from attune.store.database import Tx

# For a statement that is made anyway: whether asking for `asides` would find any.
SOME_ASIDE: Final = "EXISTS (SELECT 1 FROM worker_setback b WHERE b.until > :now)"

_ASIDES: Final = "SELECT worker, action_ref, until FROM worker_setback WHERE until > :now"


class _Aside(msgspec.Struct, frozen=True):
    worker: WorkerId
    action_ref: str
    until: datetime


async def asides(tx: Tx, now: datetime) -> frozenset[Setback]:
    return frozenset(await asides_until(tx, now))


async def asides_until(tx: Tx, now: datetime) -> Mapping[Setback, datetime]:
    """With the time at which each gets another chance."""
    found = await tx.all(_Aside, _ASIDES, now=now)
    return {(one.worker, one.action_ref): one.until for one in found}
