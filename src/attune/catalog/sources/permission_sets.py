"""permission_sets/*.yaml"""

from collections.abc import Collection
from typing import Any

from attune.catalog.grants import ACTIONS, CONSTRAINTS, RESOURCES
from attune.catalog.refs import shown, unknown_word
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import PermissionSetSource


def read_permission_set(fields: Fields, pack_ref: str) -> PermissionSetSource:
    found = PermissionSetSource(
        file=fields.file,
        ref=fields.member_ref(pack_ref, fields.required_text("ref")),
        label=fields.optional_text("label", "name"),
        description=fields.optional_text("description"),
        grants=_grants(fields),
    )
    fields.finish()
    return found


def _grants(fields: Fields) -> list[dict[str, Any]]:
    written = fields.raw("grants")
    if not isinstance(written, list):
        fields.fault("grants", "must be a list of grants" if written is not None else "is required")
        return []
    return [_grant(fields, grant, f"grants[{place}]") for place, grant in enumerate(written)]


def _grant(fields: Fields, grant: Any, place: str) -> dict[str, Any]:
    """`action: x` is the short way to write `actions: [x]`."""
    if not isinstance(grant, dict):
        fields.fault(place, "must be a mapping of resource and actions")
        return {}
    actions = grant.get("actions", grant.get("action"))
    actions = [actions] if isinstance(actions, str) else actions
    found = {"resource": grant.get("resource"), "actions": actions}
    _check_words(fields, f"{place}.resource", [found["resource"]], RESOURCES)
    _check_words(fields, f"{place}.actions", actions, ACTIONS)
    for name in grant:
        if name not in ("resource", "actions", "action", "constraints"):
            fields.fault(f"{place}.{name}", "a grant has resource, actions and constraints only")
    if grant.get("constraints"):
        _check_constraints(fields, f"{place}.constraints", grant["constraints"])
        found["constraints"] = grant["constraints"]
    return found


def _check_constraints(fields: Fields, place: str, constraints: Any) -> None:
    """A constraint that is not understood would be one that does not bind, so it is refused."""
    if not isinstance(constraints, dict):
        fields.fault(place, "must be a mapping")
        return
    _check_words(fields, place, list(constraints), CONSTRAINTS)


def _check_words(fields: Fields, place: str, words: Any, known: Collection[str]) -> None:
    if not isinstance(words, list) or not words or words == [None]:
        fields.fault(place, "is required")
        return
    for word in words:
        if word not in known:
            text = unknown_word(word, known) if isinstance(word, str) else f"{shown(str(word))}?"
            fields.fault(place, text)
