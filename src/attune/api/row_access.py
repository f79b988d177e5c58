"""Which events, enforcements and workers a caller may see: those that a grant covers, and none without one."""

from typing import Final

from attune.identities.rights import Rights, refusal
from attune.identities.row_conditions import Columns, Condition
from attune.pipeline.listing import pack_of

_COLUMNS: Final = {
    "events": Columns(id="x.id", ref="x.trigger_ref", pack_ref=pack_of("x.trigger_ref")),
    "enforcements": Columns(id="x.id", ref="x.rule_ref", pack_ref=pack_of("x.rule_ref")),
    "workers": Columns(id="x.id", ref="x.name"),
}


def readable_by(rights: Rights, resource: str, action: str = "read") -> Condition:
    """`Forbidden` for one who may never see any."""
    if not rights.may_ever(resource, action):
        raise refusal(resource, action)
    return rights.condition(resource, action, _COLUMNS[resource])
