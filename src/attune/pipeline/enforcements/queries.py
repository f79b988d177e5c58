"""Finding enforcements again."""

from typing import Any, Final

import msgspec

from attune.identities.row_conditions import ALWAYS, Condition
from attune.kernel.ids import EnforcementId, EventId, RuleId
from attune.pipeline.enforcements.model import Enforcement, EnforcementStatus, EnforcementSummary
from attune.pipeline.listing import Listed, Window, all_of, equals, newest, ref_like
from attune.pipeline.listing import total as total_of
from attune.store.database import Tx

ENFORCEMENTS: Final = Listed(
    "enforcement", EnforcementSummary, ", ".join(EnforcementSummary.__struct_fields__)
)

# The names in these statements are those of our own structs.
_DETAIL: Final = f"""
    SELECT {", ".join(Enforcement.__struct_fields__)},
           CASE WHEN x.payload IS NULL
                THEN (SELECT v.payload FROM event v WHERE v.id = x.event) END AS event_payload
      FROM enforcement x WHERE x.id = :id
"""  # noqa: S608
_REF: Final = "SELECT ref FROM rule WHERE id = :id"


class EnforcementFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What is null is not asked for."""

    rule: RuleId | None = None
    event: EventId | None = None
    status: EnforcementStatus | None = None
    trigger_ref: str | None = None
    rule_ref: str | None = None


class EnforcementDetail(Enforcement, frozen=True, kw_only=True):
    """`event_payload` is that of the event, where the enforcement has none of its own."""

    event_payload: Any = None


async def list_enforcements(
    tx: Tx, filters: EnforcementFilters, readable: Condition, window: Window
) -> list[EnforcementSummary]:
    return await newest(tx, ENFORCEMENTS, await _where(tx, filters, readable), window)


async def count_enforcements(tx: Tx, filters: EnforcementFilters, readable: Condition) -> int:
    return await total_of(tx, ENFORCEMENTS, await _where(tx, filters, readable))


async def find_enforcement(
    tx: Tx, enforcement_id: EnforcementId, readable: Condition
) -> EnforcementDetail | None:
    sql = f"{_DETAIL} AND {readable.sql}"
    return await tx.first(EnforcementDetail, sql, id=enforcement_id, **readable.values)


async def _where(tx: Tx, filters: EnforcementFilters, readable: Condition) -> Condition:
    return all_of(
        [
            readable,
            await _rule(tx, filters.rule),
            equals("event", "of_event", filters.event),
            _status(filters.status),
            ref_like("trigger_ref", filters.trigger_ref),
            ref_like("rule_ref", filters.rule_ref),
        ]
    )


def _status(status: EnforcementStatus | None) -> Condition:
    """The few that wait are found by their own index, which wants to read the word in the query."""
    if status is EnforcementStatus.CREATED:
        return Condition("x.status = 'created'", {})
    return equals("status", "status", status)


async def _rule(tx: Tx, rule: RuleId | None) -> Condition:
    """Its ref is indexed and its id is not; one that is gone is found by its id alone."""
    if rule is None:
        return ALWAYS
    ref = await tx.first(str, _REF, id=rule)
    return all_of([equals("rule", "rule", rule), equals("rule_ref", "its_ref", ref)])
