"""What a policy may say, for files and for the API alike: a document of the contract's shape, kept as columns."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from attune.catalog.policy_gates import (
    AUTO,
    CONCURRENCY,
    GATES,
    LARGEST,
    Faults,
    Shape,
    filled,
    gate_faults,
    one_of,
    text,
    whole,
)
from attune.catalog.refs import pack_part, shown, unknown_word

SCOPES: Final = ("action", "global", "pack")
PARTS: Final = ("scope", "concurrency", *GATES)
DEFAULT_FLOOR: Final = 1
DEFAULT_CEILING: Final = 100

_SCOPE: Final = Shape({"type": partial(one_of, SCOPES), "pack_ref": text, "action_ref": text})
_NEW_CONCURRENCY: Final = Shape(CONCURRENCY.fields, required=("limit",))
_NO_LIMIT: Final[dict[str, Any]] = {
    "concurrency_limit": None,
    "concurrency_floor": None,
    "concurrency_ceiling": None,
    "concurrency_method": "enqueue",
    "concurrency_parameters": [],
}
NO_GATES: Final[dict[str, Any]] = {
    **_NO_LIMIT, "rate_limit": None, "quotas": [], "windows": [], "blackouts": [],
}  # fmt: skip


def document_faults(written: Mapping[str, Any], *, is_change: bool = False) -> Faults:
    """Rules that the parts of a document break, each by itself. A change need not name the limit again."""
    found: Faults = {}
    if (scope := written.get("scope")) is not None:
        found |= _SCOPE.faults(scope, "scope")
        if not found:
            found |= _scope_faults(scope)
    if (concurrency := written.get("concurrency")) is not None:
        shape = CONCURRENCY if is_change else _NEW_CONCURRENCY
        found |= shape.faults(concurrency, "concurrency")
    return found | gate_faults(written)


def columns_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the parts that a sound document has. `concurrency_limit` may be the word "auto"."""
    found: dict[str, Any] = {}
    if (scope := written.get("scope")) is not None:
        kind = _scope_type(scope)
        found = {"scope_type": kind, "scope_ref": scope.get(f"{kind}_ref")}
    if "concurrency" in written:
        found |= _concurrency_columns(written["concurrency"])
    return found | {name: filled(name, written[name]) for name in GATES if name in written}


def settled(values: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with the word "auto" replaced by a floor and a ceiling, and without these where it goes.

    What is not written stays as it was `before`.
    """
    limit = values.get("concurrency_limit")
    if limit is None:
        return dict(values)
    bounds = {name: values.get(name) for name in ("concurrency_floor", "concurrency_ceiling")}
    if limit != AUTO:
        return {**values, **bounds}
    floor = bounds["concurrency_floor"] or before.get("concurrency_floor") or DEFAULT_FLOOR
    kept = bounds["concurrency_ceiling"] or before.get("concurrency_ceiling")
    ceiling = kept or max(floor, DEFAULT_CEILING)
    found = {"concurrency_floor": floor, "concurrency_ceiling": ceiling}
    return {**values, "concurrency_limit": None, **found}


def policy_faults(values: Mapping[str, Any]) -> Faults:
    """Rules that the settled columns of a whole policy break, under the fields that clients write."""
    found: Faults = {}
    if rule := whole(-LARGEST - 1, values["priority"]):
        found["priority"] = rule
    found |= _target_faults(values)
    found |= _concurrency_faults(values)
    found |= gate_faults(values)
    if not found and not _has_gate(values):
        names = ", ".join(("concurrency", *GATES))
        found["concurrency"] = f"a policy needs at least one of {names}"
    return found


def _scope_type(scope: Mapping[str, Any]) -> str:
    """What a scope without a type means: the narrowest thing that it names."""
    written: str | None = scope.get("type")
    return written or ("action" if scope.get("action_ref") else "pack")


def _scope_faults(scope: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    named = {name: scope.get(f"{name}_ref") for name in ("pack", "action")}
    if scope.get("type") is None and not any(named.values()):
        yield "scope.type", f"is required: {', '.join(SCOPES)}"
        return
    kind = _scope_type(scope)
    for name, ref in named.items():
        if name == kind and ref is None:
            yield f"scope.{name}_ref", "is required"
        elif name != kind and ref is not None and (rule := _stray_rule(kind, named)):
            yield f"scope.{name}_ref", rule


def _stray_rule(kind: str, named: Mapping[str, str | None]) -> str | None:
    """Why a ref does not belong into a scope. An action's own pack may be named beside it."""
    if kind != "action":
        over = "everything" if kind == "global" else "a pack"
        return f"does not belong to a policy over {over}"
    action, pack = named["action"], named["pack"]
    if action is None or pack_part(action) == pack:
        return None
    return f"{shown(action)} is not an action of this pack"


def _concurrency_columns(written: Mapping[str, Any] | None) -> dict[str, Any]:
    if written is None:
        return dict(_NO_LIMIT)
    return {f"concurrency_{name}": v for name, v in written.items() if v is not None}


def _target_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = values["scope_type"]
    if kind not in SCOPES:
        yield "scope.type", unknown_word(str(kind), SCOPES)
    elif kind != "global" and not values["scope_ref"]:
        yield f"scope.{kind}_ref", "is required"


def _concurrency_faults(values: Mapping[str, Any]) -> Faults:
    written = {name: values[f"concurrency_{name}"] for name in CONCURRENCY.fields}
    if found := dict(CONCURRENCY.faults(written, "concurrency")):
        return found
    bounds = {name: written[name] for name in ("floor", "ceiling") if written[name] is not None}
    if written["limit"] is not None:
        rule = f"is only for a limit of '{AUTO}'"
        return {f"concurrency.{name}": rule for name in bounds}
    if len(bounds) == 2:
        return _auto_faults(values["scope_type"], **bounds)
    says_more = bounds or written["parameters"] or written["method"] != "enqueue"
    return {"concurrency.limit": "is required"} if says_more else {}


def _auto_faults(scope_type: str, floor: int, ceiling: int) -> Faults:
    if scope_type != "action":
        return {"concurrency.limit": f"'{AUTO}' is only for a policy over an action"}
    if ceiling < floor:
        return {"concurrency.ceiling": f"must be at least the floor, {floor}"}
    return {}


def _has_gate(values: Mapping[str, Any]) -> bool:
    has_limit = values["concurrency_limit"] is not None or values["concurrency_ceiling"] is not None
    return has_limit or any(values[name] for name in GATES)
