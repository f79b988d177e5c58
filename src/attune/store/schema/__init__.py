"""Every table, in one place. The migrations in `migrations/` add up to exactly this; a test compares them.

Ids come from `Tx.next_ids`. On PostgreSQL the tables live in the schema `attune`, reached by search path.
"""

from attune.store.schema.base import SCHEMA, Id, JsonText, Moment, metadata
from attune.store.schema.catalog import (
    action,
    action_definition,
    identity,
    pack,
    permission_set,
    rule,
    runtime,
    trigger,
)
from attune.store.schema.identities import first_administrator, permission_assignment
from attune.store.schema.messages import dead_letter

__all__ = [
    "SCHEMA",
    "Id",
    "JsonText",
    "Moment",
    "action",
    "action_definition",
    "dead_letter",
    "first_administrator",
    "identity",
    "metadata",
    "pack",
    "permission_assignment",
    "permission_set",
    "rule",
    "runtime",
    "trigger",
]
