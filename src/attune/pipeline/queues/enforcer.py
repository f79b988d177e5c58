"""What the policies say of an action now: its limit, and whether an execution would be admitted.

It only tells. Admission itself asks the same functions again, under the locks of the lanes.
"""

from collections.abc import Mapping
from typing import Any, Final

from attune.catalog.versions import current_version
from attune.kernel.clock import Clock
from attune.kernel.ids import IdentityId
from attune.pipeline.policies.book import PolicyBook
from attune.pipeline.policies.decide import group_of, quota_pool, totals
from attune.pipeline.policies.model import Gate, GateName, Quota
from attune.pipeline.queues.looking import LaneView, view_under
from attune.pipeline.queues.making import first_limit
from attune.pipeline.queues.model import QueueTerms
from attune.store.database import Database, Tx

_NONE: Final[Mapping[str, Any]] = {}
_ORDER: Final = tuple(GateName)
_LIVE: Final = "SELECT max(max_concurrent) FROM lane WHERE action_ref = :ref AND stamp = :stamp"


class PolicyEnforcer:
    """Exactly one policy binds an action: its own before its pack's before a global one, then by priority."""

    def __init__(
        self, database: Database, book: PolicyBook, terms: QueueTerms, clock: Clock
    ) -> None:
        self._database = database
        self._book = book
        self._terms = terms
        self._clock = clock

    async def get_concurrency_limit(self, action_ref: str) -> int | None:
        """How many may hold a slot at once; null for any number. One that follows the action is told as it is now,
        for the group that has the highest."""
        return await self._database.read(self._limit, action_ref)

    async def check_policies_except_concurrency(
        self,
        action_ref: str,
        parameters: Mapping[str, Any] = _NONE,
        identity: IdentityId | None = None,
    ) -> Gate | None:
        """The first of pause, window, quota and rate that would hold or refuse an execution; null if none does."""
        view = await self._database.read(self._view, action_ref, parameters, identity)
        found = (one for one in self._closed(view) if one.name is not GateName.CONCURRENCY)
        return next(found, None)

    async def enforce(
        self,
        action_ref: str,
        parameters: Mapping[str, Any] = _NONE,
        identity: IdentityId | None = None,
    ) -> list[Gate]:
        """Every gate that is closed for an execution with these parameters; none if it would be admitted now."""
        view = await self._database.read(self._view, action_ref, parameters, identity)
        closed = self._closed(view)
        return closed + self._line(view, closed)

    async def _limit(self, tx: Tx, action_ref: str) -> int | None:
        binding = await self._book.of_action(tx, await current_version(tx), action_ref)
        policy = binding.policy
        if policy is None or not policy.is_auto:
            return policy.limit if policy else None
        live = await tx.first(int, _LIVE, ref=action_ref, stamp=binding.stamp)
        return first_limit(policy, live)

    async def _view(
        self, tx: Tx, action_ref: str, parameters: Mapping[str, Any], identity: IdentityId | None
    ) -> LaneView:
        binding = await self._book.of_action(tx, await current_version(tx), action_ref)
        group_key = group_of(binding.policy, parameters, identity, binding.secrets)
        return await view_under(tx, binding, group_key, self._clock.now())

    def _closed(self, view: LaneView) -> list[Gate]:
        found = [*view.gates(self._clock.now()), *_used_up(view)]
        closed = [gate for gate in found if gate.is_closed]
        return sorted(closed, key=lambda gate: _ORDER.index(gate.name))

    def _line(self, view: LaneView, closed: list[Gate]) -> list[Gate]:
        """Those who wait already, where nothing else is in the way, or where there is no room behind them."""
        waiting = view.lane.queue_length
        longest = view.lane.longest or self._terms.max_queue_length
        if waiting >= longest:
            text = f"the queue is full: {waiting} of at most {longest} wait in it"
            return [Gate(name=GateName.TURN, free=0, text=text, limit=longest)]
        if closed or waiting == 0:
            return []
        return [Gate(name=GateName.TURN, free=0, text=f"{waiting} wait before it")]


def _used_up(view: LaneView) -> list[Gate]:
    """Quotas that are used up by being accepted: they hold nobody, they refuse."""
    return [_total_gate(view, quota) for quota in totals(view.lane.terms)]


def _total_gate(view: LaneView, quota: Quota) -> Gate:
    used = view.pools[quota_pool(quota, view.lane.group_key)].total_accepted
    whose = " of the identity" if quota.per else ""
    return Gate(
        name=GateName.QUOTA,
        free=quota.limit - used,
        text=f"the quota executions_total{whose} accepts {quota.limit}, and {used} were accepted",
        limit=quota.limit,
        policy_ref=view.lane.terms.policy_ref if view.lane.terms else None,
    )
