"""Which policy binds an execution, and which lane and pools it leads to. Pure."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from attune.catalog.model import Policy
from attune.kernel.ids import IdentityId
from attune.pipeline.policies.calendar import blackouts_of
from attune.pipeline.policies.model import (
    EffectivePolicy,
    Method,
    Quota,
    QuotaType,
    Rate,
    Window,
)

IDENTITY: Final = "@identity"
WHOLE: Final = ""

_RANKS: Final = {"action": 0, "pack": 1, "global": 2}
_SHOWN: Final = 120


def in_effect(policies: Iterable[Policy], action_ref: str, pack_ref: str) -> Policy | None:
    """The most specific one: over the action, its pack, everything; then the higher priority, then the older."""
    names = {"action": action_ref, "pack": pack_ref, "global": None}
    bound = [
        one for one in policies if one.enabled and one.scope_ref == names.get(one.scope_type, "")
    ]
    return min(bound, key=lambda one: (_RANKS[one.scope_type], -one.priority, one.id), default=None)


def effective(policy: Policy) -> EffectivePolicy:
    return EffectivePolicy(
        policy=policy.id,
        policy_ref=policy.ref,
        scope=policy.scope_type,
        limit=policy.concurrency_limit,
        floor=policy.concurrency_floor,
        ceiling=policy.concurrency_ceiling,
        method=Method(policy.concurrency_method),
        parameters=tuple(policy.concurrency_parameters),
        rate=msgspec.convert(policy.rate_limit, Rate | None),
        quotas=msgspec.convert(policy.quotas, tuple[Quota, ...]),
        windows=msgspec.convert(policy.windows, tuple[Window, ...]),
        blackouts=blackouts_of(policy.blackouts),
    )


def stamp_of(policy: EffectivePolicy | None) -> str:
    """Tells one policy's words from another's; empty for none."""
    if policy is None:
        return ""
    return blake2b(msgspec.json.encode(policy), digest_size=8).hexdigest()


def grouping_of(policy: EffectivePolicy | None) -> tuple[str, ...]:
    """What splits an action's executions into lanes: an identity, too, where each has a quota of its own.

    So one whose quota is used up never stands in front of another.
    """
    if policy is None:
        return ()
    own = (IDENTITY,) if any(quota.per for quota in policy.quotas) else ()
    return (*policy.parameters, *own)


def group_of(
    policy: EffectivePolicy | None,
    parameters: Mapping[str, Any],
    executor: IdentityId | None,
    secrets: frozenset[str] = frozenset(),
) -> str:
    """The key of the lane within its action. What is secret or long stands in it as a digest."""
    names = grouping_of(policy)
    if not names:
        return WHOLE
    values = {**parameters, IDENTITY: executor}
    return _key({name: _shown(values.get(name), name in secrets) for name in names})


def shape_of(group_key: str) -> tuple[str, ...]:
    """By which names a lane was grouped."""
    return tuple(msgspec.json.decode(group_key)) if group_key else ()


def may_be_group(policy: EffectivePolicy | None, group_key: str) -> bool:
    """Whether executions under the policy can come to a lane of this key; what people write may be anything."""
    try:
        values = msgspec.json.decode(group_key, type=dict[str, Any]) if group_key else {}
    except msgspec.DecodeError:
        return False
    return tuple(values) == grouping_of(policy) and _key(values) == group_key


def limit_pool(policy: EffectivePolicy, group_key: str) -> str | None:
    """The key of the pool that counts for the limit; null where the lane's own count is the one."""
    if policy.limit is None:
        return None
    if policy.scope == "action" and IDENTITY not in grouping_of(policy):
        return None
    values = msgspec.json.decode(group_key) if group_key else {}
    return _key({name: values.get(name) for name in policy.parameters})


def quota_pool(quota: Quota, group_key: str) -> str:
    if not quota.per:
        return WHOLE
    return _key({IDENTITY: msgspec.json.decode(group_key).get(IDENTITY)})


def pool_keys(policy: EffectivePolicy | None, group_key: str) -> tuple[str, ...]:
    """Every pool in which the lane is counted, in one order. Where there are several, that of the whole policy is
    one of them: it is locked first, so that two lanes that share some of theirs never wait for each other."""
    if policy is None:
        return ()
    keys = {quota_pool(quota, group_key) for quota in policy.quotas}
    if policy.rate is not None:
        keys.add(WHOLE)
    if (key := limit_pool(policy, group_key)) is not None:
        keys.add(key)
    if len(keys) > 1:
        keys.add(WHOLE)
    return tuple(sorted(keys))


def totals(policy: EffectivePolicy | None) -> tuple[Quota, ...]:
    """Quotas that are used up by being accepted, not by running."""
    if policy is None:
        return ()
    return tuple(quota for quota in policy.quotas if quota.quota_type is QuotaType.TOTAL)


def _key(values: Mapping[str, Any]) -> str:
    return msgspec.json.encode(values).decode() if values else WHOLE


def _shown(value: Any, secret: bool) -> Any:
    text = msgspec.json.encode(value, order="sorted")
    if not secret and len(text) <= _SHOWN:
        return msgspec.json.decode(text)
    return f"#{blake2b(text, digest_size=12).hexdigest()}"
