"""The constraints of a grant, and what each demands of a target. `row_conditions` says the same in SQL.

A constraint that cannot be judged for a target, or that is not understood, does not hold.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from attune.catalog.equality import same
from attune.identities.model import Caller
from attune.kernel.ids import ExecutionId, IdentityId

_LARGEST_ID: Final = 2**63 - 1
SCOPES: Final = ("self", "descendants", "any")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a right is asked about. What is not said is not known.

    `owner` is null for a thing that could have an owner and has none. `executor` is whom an execution acts for,
    `line` the execution itself and its ancestors.
    """

    id: int | None = None
    ref: str | None = None
    pack_ref: str | None = None
    owner: IdentityId | UnsetType | None = UNSET
    owner_type: str | None = None
    owner_ref: str | None = None
    visibility: str | None = None
    encrypted: bool | None = None
    executor: IdentityId | None = None
    line: tuple[ExecutionId, ...] = ()


Constraints = Mapping[str, Any]


def normal(written: Mapping[str, Any]) -> Constraints:
    """As they are judged: lists as sets, and nothing in a shape that means nothing."""
    return {name: _NORMAL.get(name, _unknown)(value) for name, value in written.items()}


def all_hold(constraints: Constraints, target: Target, caller: Caller) -> bool:
    return all(
        name in _JUDGES and _JUDGES[name](wanted, target, caller)
        for name, wanted in constraints.items()
    )


def is_within(narrow: Constraints, wide: Constraints) -> bool:
    """Whether everything that the one allows is allowed by the other, too."""
    return all(_is_narrower(name, narrow.get(name, UNSET), wide[name]) for name in wide)


def execution_of(caller: Caller) -> ExecutionId | None:
    """The execution that a token was made for."""
    number = caller.metadata.get("execution_id")
    return ExecutionId(number) if type(number) is int and 0 < number <= _LARGEST_ID else None


def _is_narrower(name: str, narrow: Any, wide: Any) -> bool:
    if wide == "any":
        return True
    if narrow is UNSET:
        return False
    if isinstance(wide, frozenset):
        return isinstance(narrow, frozenset) and narrow <= wide
    if name == "execution_scope" and narrow in SCOPES and wide in SCOPES:
        return SCOPES.index(narrow) <= SCOPES.index(wide)
    if isinstance(wide, Mapping) and isinstance(narrow, Mapping):
        return all(key in narrow and same(narrow[key], wide[key]) for key in wide)
    return same(narrow, wide)


def _words(value: Any) -> frozenset[str]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(word for word in listed if isinstance(word, str) and "\0" not in word)


def _numbers(value: Any) -> frozenset[int]:
    listed = value if isinstance(value, list) else [value]
    return frozenset(each for each in listed if type(each) is int and 0 < each <= _LARGEST_ID)


def _as_written(value: Any) -> Any:
    return value


def _unknown(_value: Any) -> Any:
    return None


_NORMAL: Final[dict[str, Callable[[Any], Any]]] = {
    "pack_refs": _words,
    "refs": _words,
    "ids": _numbers,
    "owner": _as_written,
    "owner_types": _words,
    "owner_refs": _words,
    "visibility": _words,
    "encrypted": _as_written,
    "execution_scope": _as_written,
    "attributes": _as_written,
}


def has_attributes(wanted: Any, _target: object, caller: Caller) -> bool:
    """These are the caller's own, whatever the target is."""
    return isinstance(wanted, Mapping) and all(
        name in caller.attributes and same(caller.attributes[name], value)
        for name, value in wanted.items()
    )


def _owner_fits(wanted: Any, target: Target, caller: Caller) -> bool:
    if wanted == "any":
        return True
    if target.owner is UNSET:
        return False
    return target.owner == caller.identity if wanted == "self" else _is_none(wanted, target.owner)


def _is_none(wanted: Any, owner: IdentityId | None) -> bool:
    return wanted == "none" and owner is None


def _scope_fits(wanted: Any, target: Target, caller: Caller) -> bool:
    """A token of an execution stands for that execution; any other, for what its identity asked for."""
    own = execution_of(caller)
    if wanted == "any":
        return True
    if wanted not in SCOPES:
        return False
    if own is None:
        return target.executor is not None and target.executor == caller.identity
    return own == target.id if wanted == "self" else own in target.line


_JUDGES: Final[dict[str, Callable[[Any, Target, Caller], bool]]] = {
    "pack_refs": lambda wanted, target, _: target.pack_ref in wanted,
    "refs": lambda wanted, target, _: target.ref in wanted,
    "ids": lambda wanted, target, _: target.id in wanted,
    "owner": _owner_fits,
    "owner_types": lambda wanted, target, _: target.owner_type in wanted,
    "owner_refs": lambda wanted, target, _: target.owner_ref in wanted,
    "visibility": lambda wanted, target, _: target.visibility in wanted,
    "encrypted": lambda wanted, target, _: isinstance(wanted, bool) and target.encrypted is wanted,
    "execution_scope": _scope_fits,
    "attributes": has_attributes,
}
