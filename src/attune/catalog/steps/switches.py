"""On and off, for rules and triggers. The choice survives an update of the pack."""

from datetime import datetime

from attune.catalog import rows
from attune.catalog.model import Rule, Trigger
from attune.catalog.rows import RULES, TRIGGERS
from attune.store.database import Tx


async def switch_rule(tx: Tx, key: str | int, now: datetime, *, enabled: bool) -> Rule:
    rule = await rows.get(tx, RULES, key)
    return await rows.change(tx, RULES, rule, {"enabled": enabled}, now)


async def switch_trigger(tx: Tx, key: str | int, now: datetime, *, enabled: bool) -> Trigger:
    trigger = await rows.get(tx, TRIGGERS, key)
    return await rows.change(tx, TRIGGERS, trigger, {"enabled": enabled}, now)
