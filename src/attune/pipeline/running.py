"""How a process runs steps of the pipeline, and gives on to workers what they made ready."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, ParamSpec, TypeVar

from attune.catalog.definitions import Definitions
from attune.catalog.versions import Versions
from attune.kernel.clock import Clock
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.queues.arrivals import Arrivals
from attune.pipeline.queues.steps import Lanes
from attune.pipeline.scheduling.model import Terms, Unplaceable
from attune.pipeline.scheduling.muster import Muster
from attune.pipeline.scheduling.steps import Scheduler, fail_unplaceable
from attune.store.database import Database, Step, Tx

QUEUES: Final = "queues"

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a step came to, and what it found that nobody can run."""

    value: T
    unplaceable: tuple[Unplaceable, ...] = ()


class Running:
    """`through` tells that handing over to workers is this process's business, too."""

    def __init__(
        self, database: Database, clock: Clock, mail: Mail, terms: Terms, *, through: bool
    ) -> None:
        self.database = database
        self.clock = clock
        self.mail = mail
        self.terms = terms
        self.versions = Versions()
        self.definitions = Definitions()
        self.scheduler = Scheduler(terms, self.definitions)
        self._through = through

    async def _run(self, step: Step[P, Done[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a step, then end what it found that nobody can run."""
        return await self._placed(await self.database.run(step, *args, **kwargs))

    async def _jot(self, step: Step[P, Done[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a step that is known to be short."""
        return await self._placed(await self.database.jot(step, *args, **kwargs))

    async def _placed(self, done: Done[T]) -> T:
        """End what nobody can run. That frees slots for others, of whom the same may be true."""
        unplaceable = done.unplaceable
        while unplaceable:
            unplaceable = (await self.database.run(self._fail_step, unplaceable)).unplaceable
        return done.value

    async def _fail_step(self, tx: Tx, unplaceable: tuple[Unplaceable, ...]) -> Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        await fail_unplaceable(tx, self.terms, outbox, unplaceable, now)
        return Done(None, await self.scheduler.assign(tx, outbox, now))

    async def _given_on(
        self,
        tx: Tx,
        outbox: Outbox,
        now: datetime,
        arrivals: Arrivals | None = None,
        muster: Muster | None = None,
    ) -> tuple[Unplaceable, ...]:
        """What is ready goes to workers here, where that is this process's business. The arrivals are so by this step,
        and are written. The workers may have been asked for before."""
        arrivals = arrivals or Arrivals()
        unplaceable: tuple[Unplaceable, ...] = ()
        if self._through:
            unplaceable = await self.scheduler.assign(tx, outbox, now, arrivals, muster)
        await arrivals.save(tx)
        return unplaceable

    async def _saved(self, lanes: Lanes, *, changed: bool = False) -> Done[None]:
        """Written, and given on to workers. `changed`: what lets them through did, which a queue outside must hear."""
        outbox = Outbox(lanes.tx, self.mail)
        if changed and self.terms.queue.deferred:
            lanes.tx.wake(QUEUES)
        await lanes.save()
        unplaceable = await self._given_on(lanes.tx, outbox, lanes.now)
        if not self._through:
            outbox.hurry(lanes.promoted)
        return Done(None, unplaceable)
