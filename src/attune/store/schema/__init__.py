"""Every table, in one place. The migrations in `migrations/` add up to exactly this; a test compares them.

Ids come from `Tx.next_ids`. On PostgreSQL the tables live in the schema `attune`, reached by search path.
"""

from attune.store.schema.base import SCHEMA, Id, JsonText, Moment, metadata
from attune.store.schema.messages import dead_letter

__all__ = ["SCHEMA", "Id", "JsonText", "Moment", "dead_letter", "metadata"]
