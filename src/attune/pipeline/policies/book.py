"""The policy in effect for each action, kept for as long as the catalog stays as it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from attune.catalog import rows
from attune.catalog.model import Policy
from attune.catalog.refs import pack_part
from attune.catalog.schemas import compile_schema
from attune.catalog.versions import VersionedCache
from attune.pipeline.executions.model import Execution
from attune.pipeline.policies.decide import effective, group_of, in_effect, stamp_of
from attune.pipeline.policies.model import EffectivePolicy
from attune.store.database import Tx

_COLUMNS = ", ".join(Policy.__struct_fields__)
# The names in this statement are those of our own struct.
_BINDING: Final = f"""
    SELECT {_COLUMNS} FROM policy
     WHERE enabled AND (scope_type = 'global' OR (scope_type = 'pack' AND scope_ref = :pack)
        OR (scope_type = 'action' AND scope_ref = :action))
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Binding:
    """What binds an action's executions. `secrets` are the parameters whose values nobody may see."""

    action_ref: str
    policy: EffectivePolicy | None = None
    stamp: str = ""
    secrets: frozenset[str] = frozenset()

    def group_of(self, execution: Execution) -> str:
        return group_of(self.policy, execution.config, execution.executor, self.secrets)


class PolicyBook:
    """`version` is the catalog's, read in the same transaction."""

    def __init__(self) -> None:
        self._known: VersionedCache[str, Binding] = VersionedCache()

    async def of_actions(
        self, tx: Tx, version: int, action_refs: Iterable[str]
    ) -> dict[str, Binding]:
        return {ref: await self.of_action(tx, version, ref) for ref in sorted(set(action_refs))}

    async def of_action(self, tx: Tx, version: int, action_ref: str) -> Binding:
        known = self._known.get(version, action_ref)
        if known is None:
            known = await _binding(tx, action_ref)
            self._known.put(version, action_ref, known)
        return known


async def _binding(tx: Tx, action_ref: str) -> Binding:
    pack_ref = pack_part(action_ref)
    found = await tx.all(Policy, _BINDING, action=action_ref, pack=pack_ref)
    policy = in_effect(found, action_ref, pack_ref)
    if policy is None:
        return Binding(action_ref)
    bound = effective(policy)
    return Binding(action_ref, bound, stamp_of(bound), await _secrets(tx, policy, action_ref))


async def _secrets(tx: Tx, policy: Policy, action_ref: str) -> frozenset[str]:
    if not policy.concurrency_parameters:
        return frozenset()
    action = await rows.find(tx, rows.ACTIONS, action_ref)
    return compile_schema(action.param_schema).secret_names if action else frozenset()
