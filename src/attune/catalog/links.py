"""Joins definitions to what their refs name, once it is there again.

A rule or action outlives the trigger, action or runtime that it names; its id is null meanwhile.
"""

from attune.store.database import Tx

_STATEMENTS = {
    "trigger": """
        UPDATE rule SET trigger = (SELECT t.id FROM trigger t WHERE t.ref = rule.trigger_ref)
         WHERE rule.trigger IS NULL AND rule.trigger_ref = ANY(:refs::text[])""",
    "action": """
        UPDATE rule SET action = (SELECT a.id FROM action a WHERE a.ref = rule.action_ref)
         WHERE rule.action IS NULL AND rule.action_ref = ANY(:refs::text[])""",
    "runtime": """
        UPDATE action SET runtime = (SELECT r.id FROM runtime r WHERE r.ref = action.runtime_ref)
         WHERE action.runtime IS NULL AND action.runtime_ref = ANY(:refs::text[])""",
}


async def relink(tx: Tx, noun: str, refs: list[str]) -> None:
    """After rows with these refs were made. Nouns that nothing refers to are fine."""
    statement = _STATEMENTS.get(noun)
    if statement and refs:
        await tx.execute(statement, refs=refs)
