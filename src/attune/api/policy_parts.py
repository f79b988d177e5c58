"""The parts of a policy in bodies and answers. They are described here; `catalog/policy_gates.py` judges them."""

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema

from attune.api.fields import JsonObject
from attune.catalog.policy_gates import LARGEST, METHODS, MOST, QUOTA_TYPES
from attune.catalog.policy_rules import DEFAULT_CEILING, DEFAULT_FLOOR, SCOPES
from attune.catalog.policy_times import DAYS, DEFAULT_ZONE

Described = dict[str, Any]


def _object(required: tuple[str, ...] = (), /, **properties: Described) -> Described:
    found: Described = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name.rstrip("_"): each for name, each in properties.items()},
    }
    return {**found, "required": list(required)} if required else found


def _list(name: str, item: Described) -> Described:
    return {"type": "array", "items": item, "maxItems": MOST[name]}


def _whole(least: int, description: str) -> Described:
    return {
        "type": "integer",
        "minimum": least,
        "maximum": LARGEST,
        "description": description,
    }


def _or_null(described: Described) -> Described:
    return {"anyOf": [described, {"type": "null"}]}


def _text(description: str, *examples: str) -> Described:
    return {"type": "string", "minLength": 1, "description": description, "examples": [*examples]}


_LIMIT: Final[Described] = {
    "anyOf": [
        _whole(0, "How many may run at once; 0 holds everything."),
        {"const": "auto", "description": "It follows the action between floor and ceiling."},
    ]
}
_SCOPE: Final = _object(
    type=_or_null({"enum": list(SCOPES), "description": "By default the narrowest thing named."}),
    pack_ref=_or_null(_text("For a policy over a pack.", "shop")),
    action_ref=_or_null(_text("For a policy over an action.", "shop.ship")),
)
_CONCURRENCY: Final = _object(
    limit=_or_null(_LIMIT),
    floor=_or_null(_whole(1, f"Of 'auto'; {DEFAULT_FLOOR} by default.")),
    ceiling=_or_null(_whole(1, f"Of 'auto'; {DEFAULT_CEILING} by default.")),
    method=_or_null({"enum": list(METHODS), "description": "What happens to the others."}),
    parameters=_or_null(
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "uniqueItems": True,
            "description": "Each group of executions with the same values of these has the limit.",
        }
    ),
)
_RATE: Final = _object(
    ("max_executions", "window_seconds"),
    max_executions=_whole(1, "How many may start in any such span."),
    window_seconds={"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST},
)
_QUOTA: Final = _object(
    ("quota_type", "limit"),
    quota_type={"enum": list(QUOTA_TYPES)},
    limit=_whole(0, "How many there may be."),
    per=_or_null({"enum": ["identity"], "description": "Each identity has the quota."}),
)
_WINDOW: Final = _object(
    ("start", "end"),
    days=_or_null(
        {
            "type": "array",
            "items": {"enum": list(DAYS)},
            "minItems": 1,
            "description": "On which it starts; all by default.",
        }
    ),
    start=_text("HH:MM.", "22:00"),
    end=_text("HH:MM; at or before the start it is that of the next day.", "06:00"),
    timezone=_or_null(_text(f"{DEFAULT_ZONE} by default.", "Europe/Berlin")),
)
_BLACKOUT: Final = _object(
    ("from", "to"),
    from_=_text("A moment with an offset, or a date.", "2026-12-24T18:00:00Z", "2026-12-24"),
    to=_text("A moment, not included; or a date, included.", "2026-12-27"),
)

Scope = Annotated[JsonObject, WithJsonSchema(_SCOPE)]
Concurrency = Annotated[JsonObject, WithJsonSchema(_CONCURRENCY)]
RateLimit = Annotated[JsonObject, WithJsonSchema(_RATE)]
Quotas = Annotated[list[JsonObject], WithJsonSchema(_list("quotas", _QUOTA))]
Windows = Annotated[list[JsonObject], WithJsonSchema(_list("windows", _WINDOW))]
Blackouts = Annotated[list[JsonObject], WithJsonSchema(_list("blackouts", _BLACKOUT))]
