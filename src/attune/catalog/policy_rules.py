"""What a policy may say, for files and for the API alike.

A policy whose limit nobody keeps is worse than none, so what is part of the contract but has no effect yet is
told to its author by field, and never kept.
"""

from collections.abc import Mapping
from typing import Any, Final

from attune.catalog.refs import unknown_word

SCOPES: Final = ("action", "global", "pack")
METHODS: Final = ("cancel", "enqueue")
GATES: Final = ("rate_limit", "quotas", "windows", "blackouts")
LARGEST: Final = 2**31 - 1

Faults = dict[str, str]


def scope_type_of(written: str | None, pack_ref: str | None, action_ref: str | None) -> str:
    """What a scope without a type means: the narrowest thing that it names."""
    if written is not None:
        return written
    if action_ref is not None:
        return "action"
    return "global" if pack_ref is None else "pack"


def policy_faults(values: Mapping[str, Any]) -> Faults:
    """Rules that these columns break, under the fields that clients write."""
    found: Faults = {}
    if "scope_type" in values and values["scope_type"] not in SCOPES:
        found["scope.type"] = unknown_word(str(values["scope_type"]), SCOPES)
    if values.get("scope_type") == "action" and not values.get("scope_ref"):
        found["scope.action_ref"] = "is required"
    if "concurrency_method" in values and values["concurrency_method"] not in METHODS:
        method = str(values["concurrency_method"])
        found["concurrency.method"] = unknown_word(method, METHODS)
    for name, field, least in (
        ("concurrency_limit", "concurrency.limit", 0),
        ("priority", "priority", -LARGEST - 1),
    ):
        if values.get(name) is not None and not least <= values[name] <= LARGEST:
            too_small = values[name] < least
            found[field] = f"must be at least {least}" if too_small else "is too large"
    return found


def unsupported(values: Mapping[str, Any]) -> Faults:
    """What is sound and has no effect yet, under the fields that clients write."""
    found: Faults = {}
    if (scope := values.get("scope_type", "action")) != "action":
        over = "over a pack" if scope == "pack" else "over everything"
        found["scope.type"] = f"a policy {over} is not supported yet, only one over an action"
    if values.get("concurrency_method", "enqueue") != "enqueue":
        found["concurrency.method"] = "'cancel' is not supported yet, only 'enqueue'"
    if values.get("concurrency_parameters"):
        found["concurrency.parameters"] = "a limit for each group is not supported yet"
    found |= {name: "is not supported yet" for name in GATES if values.get(name)}
    return found


def without_effect(values: Mapping[str, Any]) -> Faults:
    """The same for a whole policy: without a limit it would do nothing at all."""
    found = unsupported(values)
    if not found and values.get("concurrency_limit") is None:
        found["concurrency.limit"] = "is required: policies without it are not supported yet"
    return found
