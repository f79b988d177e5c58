"""Keeping dead letters."""

import hashlib
from datetime import datetime

from attune.bus.dead_letters import DeadLetter
from attune.dead_letters.model import KeptLetter
from attune.kernel.ids import DeadLetterId
from attune.store.database import Tx
from attune.store.schema import dead_letter


async def keep(tx: Tx, letter: DeadLetter, now: datetime) -> bool:
    """Keep a letter; False when it is kept already."""
    [new_id] = await tx.next_ids(dead_letter)
    kept = _kept(DeadLetterId(new_id), letter, now)
    return await tx.insert(dead_letter, [kept], skip_existing=True) == 1


def _fingerprint(letter: DeadLetter) -> str:
    digest = hashlib.sha256()
    for part in (letter.queue.encode(), letter.died_at.isoformat().encode(), letter.body):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()


def _kept(id_: DeadLetterId, letter: DeadLetter, now: datetime) -> KeptLetter:
    return KeptLetter(
        id=id_,
        queue=letter.queue,
        reason=letter.reason.value,
        error=letter.error or None,
        message_id=str(letter.message_id) if letter.message_id else None,
        message_type=letter.message_type,
        retry_count=letter.retry_count,
        body=letter.body,
        died_at=letter.died_at,
        fingerprint=_fingerprint(letter),
        created=now,
        updated=now,
    )
