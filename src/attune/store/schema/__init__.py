"""Every table, in one place. The migrations in `migrations/` add up to exactly this; a test compares them.

Ids come from `Tx.next_ids`. On PostgreSQL the tables live in the schema `attune`, reached by search path.
"""

from attune.store.schema.base import SCHEMA, Id, JsonText, Moment, metadata
from attune.store.schema.catalog import (
    action,
    action_definition,
    catalog_version,
    identity,
    pack,
    permission_set,
    policy,
    rule,
    runtime,
    setting,
    trigger,
)
from attune.store.schema.identities import first_administrator, permission_assignment
from attune.store.schema.messages import dead_letter
from attune.store.schema.pipeline import (
    admission,
    decision,
    delay,
    enforcement,
    entry,
    event,
    execution,
    execution_attempt,
    execution_output,
    lane,
    pool,
    worker,
    worker_history,
    worker_setback,
)
from attune.store.schema.views import VIEWS

__all__ = [
    "SCHEMA",
    "VIEWS",
    "Id",
    "JsonText",
    "Moment",
    "action",
    "action_definition",
    "admission",
    "catalog_version",
    "dead_letter",
    "decision",
    "delay",
    "enforcement",
    "entry",
    "event",
    "execution",
    "execution_attempt",
    "execution_output",
    "first_administrator",
    "identity",
    "lane",
    "metadata",
    "pack",
    "permission_assignment",
    "permission_set",
    "policy",
    "pool",
    "rule",
    "runtime",
    "setting",
    "trigger",
    "worker",
    "worker_history",
    "worker_setback",
]
