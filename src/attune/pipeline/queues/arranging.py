"""Lanes follow their policies: made under the one in effect, and arranged anew when it changes.

A lane keeps the words of its policy, so an admission needs nothing but the lane. A change of policy reaches what
already waits in one transaction, under the locks of all lanes of the action: who waits keeps the order, who holds a
slot keeps it, and where executions are grouped otherwise they move to the lanes of their groups.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from attune.catalog.versions import CatalogTaken, Expected, VersionedCache
from attune.kernel.errors import NotFound, Outdated
from attune.kernel.ids import ExecutionId, LaneId, PolicyId
from attune.pipeline.executions.model import Execution
from attune.pipeline.policies.book import Binding, PolicyBook
from attune.pipeline.policies.decide import (
    WHOLE,
    grouping_of,
    may_be_group,
    shape_of,
)
from attune.pipeline.queues import locking
from attune.pipeline.queues.locking import Key, Locked
from attune.pipeline.queues.making import bind, forget_pools, make_lanes
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.moving import move
from attune.pipeline.queues.steps import Lanes
from attune.store.database import Tx

Along = Callable[[], Awaitable[None]]

# Whoever makes a lane reads the version in a way that excludes this: so none is made while an action is paused.
_ALONE: Final = "SELECT version FROM catalog_version FOR UPDATE"
_ACTIONS: Final = "SELECT DISTINCT action_ref FROM lane"
_ODD: Final = "SELECT 1 FROM lane WHERE action_ref = :ref AND stamp <> :stamp LIMIT 1"


class Placed(msgspec.Struct, frozen=True):
    """The lanes that were locked, and which of them each execution goes to."""

    lanes: Lanes
    places: dict[ExecutionId, LaneId]


class Arranger:
    """Finds, makes and arranges lanes as the policies of the catalog want them. `version` is the catalog's."""

    def __init__(self, book: PolicyBook, terms: QueueTerms) -> None:
        self.book = book
        self.terms = terms
        self._open: VersionedCache[str, Binding] = VersionedCache()

    async def place(
        self,
        tx: Tx,
        version: Expected,
        executions: Sequence[Execution],
        now: datetime,
        along: Along | None = None,
    ) -> Placed:
        """Lock the lanes that these go to, made or arranged first if need be. The version is confirmed then.

        `along` asks for locks that come after those of all lanes. It is called, for the same round trip, where these are
        known to be all, and to hold nobody back.
        """
        refs = {one.action_ref for one in executions}
        bindings = await self.book.of_actions(tx, version.number, refs)
        keys: dict[ExecutionId, Key] = {
            one.id: (one.action_ref, bindings[one.action_ref].group_of(one)) for one in executions
        }
        held = await self._lock(tx, version, bindings, set(keys.values()), along)
        lanes = Lanes(tx, held, self.terms, now)
        for binding in bindings.values():
            groups = {group for ref, group in keys.values() if ref == binding.action_ref}
            try:
                await self._prepare(lanes, version.number, binding, groups)
            except CatalogTaken:
                version.taken()
                raise
            self._remember(tx, version.number, binding)
        ids = {lane.key: lane.id for lane in lanes.held.lanes.values()}
        return Placed(lanes, {execution: ids[key] for execution, key in keys.items()})

    async def of_action(
        self, tx: Tx, version: int, action_ref: str, group_key: str | None, now: datetime
    ) -> Lanes:
        """All of its lanes, or the one of a group. The lane without a group is made if need be: it is the switch
        from which a new lane learns whether the action's queue is paused. `NotFound` for what is no group."""
        lanes = Lanes(tx, Locked(), self.terms, now)
        await tx.one(int, _ALONE)
        binding = await self.book.of_action(tx, version, action_ref)
        wanted = {WHOLE if group_key is None else group_key}
        ids = await locking.of_action(tx, action_ref, group_key)
        await locking.lock(tx, ids, lanes.held)
        if missing := wanted - {lane.group_key for lane in lanes.held.lanes.values()}:
            _check_group(binding, group_key)
            await make_lanes(lanes, version, binding, missing)
        return lanes

    async def arrange_all(self, tx: Tx, version: int, now: datetime) -> Lanes:
        """Let every lane follow the policy in effect now; the slots that this frees are still to be given."""
        lanes = Lanes(tx, Locked(), self.terms, now)
        refs = await tx.all(str, _ACTIONS)
        bindings = await self.book.of_actions(tx, version, refs)
        odd = [binding for binding in bindings.values() if await _is_odd(tx, binding)]
        ids = {each for one in odd for each in await locking.of_action(tx, one.action_ref)}
        await locking.lock(tx, ids, lanes.held)
        for binding in odd:
            await self._arrange(lanes, version, binding)
        await forget_pools(tx)
        return lanes

    async def _lock(
        self,
        tx: Tx,
        version: Expected,
        bindings: Mapping[str, Binding],
        keys: set[Key],
        along: Along | None,
    ) -> Locked:
        asked, held = await locking.ask_by_keys(tx, keys), Locked()
        if along is None or not all(self._open.get(version.number, ref) for ref in bindings):
            await version.confirm(tx)
            await locking.lock_by_keys(tx, keys, held, asked)
            return held
        await along()
        await version.confirm(tx)
        held.add(asked.rows)
        self._check_open(version.number, bindings, held)
        return held

    def _check_open(self, version: int, bindings: Mapping[str, Binding], held: Locked) -> None:
        """No lane may be locked any more: where one is missing, or to be arranged, the step begins anew without that."""
        stamps = {lane.action_ref: lane.stamp for lane in held.lanes.values()}
        odd = [ref for ref, binding in bindings.items() if stamps.get(ref) != binding.stamp]
        for ref in odd:
            self._open.forget(version, ref)
        if odd:
            raise Outdated("A lane was put under another policy meanwhile.")

    def _remember(self, tx: Tx, version: int, binding: Binding) -> None:
        """Without a policy an action has one lane, which is there from this commit on, and in which nobody waits unless a
        queue outside proposes who is next."""
        is_open = binding.policy is None and not self.terms.deferred
        if is_open and not self._open.get(version, binding.action_ref):
            tx.on_commit(partial(self._open.put, version, binding.action_ref, binding))

    async def _prepare(
        self, lanes: Lanes, version: int, binding: Binding, groups: set[str]
    ) -> None:
        own = [one for one in lanes.held.lanes.values() if one.action_ref == binding.action_ref]
        missing = groups - {one.group_key for one in own}
        if any(one.stamp != binding.stamp for one in own) or (
            missing and await _is_odd(lanes.tx, binding)
        ):
            await self._arrange(lanes, version, binding)
            missing -= {one.group_key for one in lanes.held.lanes.values()}
        if missing:
            await make_lanes(lanes, version, binding, missing)

    async def _arrange(self, lanes: Lanes, version: int, binding: Binding) -> None:
        """All lanes of the action, under their locks. A lane that follows a newer catalog sends us back to read it."""
        ids = await locking.of_action(lanes.tx, binding.action_ref)
        await locking.lock(lanes.tx, ids, lanes.held)
        own = [lanes.held.lanes[lane_id] for lane_id in ids]
        if any(one.arranged > version for one in own):
            raise Outdated("The policies have changed meanwhile.")
        grouping = grouping_of(binding.policy)
        odd = [lane for lane in own if lane.stamp != binding.stamp]
        for lane in odd:
            if shape_of(lane.group_key) == grouping:
                await bind(lanes, version, binding.stamp, lane.id, binding.policy)
        astray = [lane.id for lane in odd if shape_of(lane.group_key) != grouping]
        await move(lanes, version, binding, astray)
        for lane_id in astray:
            await bind(lanes, version, binding.stamp, lane_id, None)
        if binding.policy is not None and binding.policy.rate is not None:
            await lanes.adopt_starts(_under(lanes, binding.policy.policy, binding.action_ref))


def _check_group(binding: Binding, group_key: str | None) -> None:
    if group_key and not may_be_group(binding.policy, group_key):
        by = ", ".join(grouping_of(binding.policy)) or "nothing"
        raise NotFound(
            f"The queue of {binding.action_ref} has no group {group_key[:200]}; it is grouped by {by}.",
            action_ref=binding.action_ref,
            group=group_key[:200],
        )


def _under(lanes: Lanes, policy: PolicyId, action_ref: str) -> list[LaneId]:
    """The action's lanes that the policy binds."""
    own = [one for one in lanes.held.lanes.values() if one.action_ref == action_ref]
    return [one.id for one in own if one.terms is not None and one.terms.policy == policy]


async def _is_odd(tx: Tx, binding: Binding) -> bool:
    """Whether a lane of the action follows another policy, or older words of it."""
    found = await tx.first(int, _ODD, ref=binding.action_ref, stamp=binding.stamp)
    return found is not None
