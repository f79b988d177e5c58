"""What a caller may do: a pure decision over the grants of its permission sets.

    rights.require("rules", "update", Target(ref=rule.ref, pack_ref=rule.pack_ref))

A list asks for `condition` instead, and puts it into its query, so that pages and totals count nothing that
may not be seen. core.admin means everything, whatever its row says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from attune.identities.constraints import Constraints, Target, all_hold, is_within, normal
from attune.identities.model import ADMINISTRATOR, Caller, TokenType
from attune.identities.row_conditions import ALWAYS, Columns, Condition, condition_of, either
from attune.kernel.errors import Forbidden

# The special set: an execution's own things, and those of its pack. It may be given by anybody.
STANDARD: Final = "standard"

_STANDARD_ACTIONS: Final = {
    "keys": ("read", "decrypt"),
    "artifacts": ("read", "create", "update", "delete"),
}


class Grant(msgspec.Struct, frozen=True):
    resource: str
    actions: frozenset[str]
    constraints: Constraints


def read_grants(written: Iterable[Mapping[str, Any]]) -> tuple[Grant, ...]:
    """Grants as a permission set holds them, ready to be judged."""
    return tuple(
        Grant(each["resource"], frozenset(each["actions"]), normal(each.get("constraints") or {}))
        for each in written
    )


class Rights:
    """One caller's. It holds for one request: what is assigned may be another thing in the next."""

    __slots__ = ("_by_right", "caller", "is_everything")

    def __init__(
        self, caller: Caller, by_right: Mapping[tuple[str, str], Sequence[Constraints]]
    ) -> None:
        self.caller = caller
        self.is_everything = ADMINISTRATOR in caller.permission_set_refs
        self._by_right = by_right

    @property
    def is_execution(self) -> bool:
        """Such a token has nothing of its identity's own."""
        return self.caller.token_type is TokenType.EXECUTION

    def allows(self, resource: str, action: str, target: Target = Target()) -> bool:  # noqa: B008 - frozen
        return self.is_everything or any(
            all_hold(each, target, self.caller) for each in self._granted(resource, action)
        )

    def require(self, resource: str, action: str, target: Target = Target()) -> None:  # noqa: B008 - frozen
        if not self.allows(resource, action, target):
            raise refusal(resource, action, target.ref)

    def may_ever(self, resource: str, action: str) -> bool:
        """Whether it is allowed for anything at all."""
        return self.is_everything or bool(self._granted(resource, action))

    def condition(self, resource: str, action: str, columns: Columns) -> Condition:
        """For which rows of a table it is allowed."""
        if self.is_everything:
            return ALWAYS
        granted = self._granted(resource, action)
        return either(
            condition_of(each, columns, self.caller, f"right_{action}_{place}")
            for place, each in enumerate(granted)
        )

    def named_condition(self, resource: str, action: str, columns: Columns) -> Condition:
        """The same, by grants alone that say which things they mean."""
        if self.is_everything:
            return ALWAYS
        granted = [each for each in self._granted(resource, action) if _names(each)]
        return either(
            condition_of(each, columns, self.caller, f"named_{action}_{place}")
            for place, each in enumerate(granted)
        )

    def covers(self, grants: Iterable[Grant]) -> bool:
        """Whether these grants give nothing that the caller does not have."""
        return self.is_everything or all(
            any(is_within(grant.constraints, own) for own in self._granted(grant.resource, action))
            for grant in grants
            for action in grant.actions
        )

    def _granted(self, resource: str, action: str) -> Sequence[Constraints]:
        return self._by_right.get((resource, action), ())


def indexed(grants: Iterable[Grant]) -> dict[tuple[str, str], list[Constraints]]:
    """Grants by what they allow, which is how they are asked for."""
    found: dict[tuple[str, str], list[Constraints]] = {}
    for grant in grants:
        for action in grant.actions:
            found.setdefault((grant.resource, action), []).append(grant.constraints)
    return found


def standard_grants(caller: Caller) -> tuple[Grant, ...]:
    """What the set `standard` means for this token: the things of its actions and of its packs."""
    if caller.token_type is not TokenType.EXECUTION:
        return ()
    owners = {
        "action": caller.metadata.get("standard_access_action_refs"),
        "pack": caller.metadata.get("standard_access_pack_refs"),
    }
    return tuple(
        Grant(
            resource,
            frozenset(actions),
            normal({"owner_types": [kind], "owner_refs": refs}),
        )
        for kind, refs in owners.items()
        for resource, actions in _STANDARD_ACTIONS.items()
    )


def refusal(resource: str, action: str, ref: str | None = None) -> Forbidden:
    on = f" on '{ref}'" if ref else ""
    return Forbidden(
        f"This needs the permission {resource}:{action}{on}, which you do not have.",
        permission=f"{resource}:{action}",
    )


def _names(constraints: Constraints) -> bool:
    return not {"pack_refs", "refs", "ids", "owner"}.isdisjoint(constraints)
