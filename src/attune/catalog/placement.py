"""Which workers may run an action: the shapes of selectors, tolerations and affinity, as the API has them.

They are kept and answered as they were written; these structs tell whether they can be understood.
"""

from typing import Annotated, Any, Literal

import msgspec


class Toleration(msgspec.Struct, frozen=True):
    key: str
    operator: Literal["equal", "exists"] = "equal"
    value: str | None = None
    effect: Literal["no_schedule", "prefer_no_schedule"] | None = None


class LabelExpression(msgspec.Struct, frozen=True):
    key: str
    operator: Literal["in", "not_in", "exists", "does_not_exist"]
    values: list[str] = []


class SelectorTerm(msgspec.Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelExpression] = []


class PreferredTerm(msgspec.Struct, frozen=True):
    preference: SelectorTerm
    weight: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1


class Affinity(msgspec.Struct, frozen=True):
    required: list[SelectorTerm] = []
    preferred: list[PreferredTerm] = []
    anti_affinity: list[SelectorTerm] = []


class Needs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one execution asks of a worker, beside its action's runtime. `avoid` are those it failed on before."""

    selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity = Affinity()
    avoid: tuple[int, ...] = ()


SHAPES: dict[str, Any] = {
    "worker_selector": dict[str, str],
    "worker_tolerations": list[Toleration],
    "worker_affinity": Affinity,
    "required_worker_runtimes": dict[str, str],
}


def placement_fault(field: str, value: object) -> str | None:
    """Which rule the value of one of these fields breaks, or None."""
    try:
        msgspec.convert(value, SHAPES[field])
    except msgspec.ValidationError as error:
        return str(error).replace("`", "'").replace(" - at '$", " at '")
    return None
