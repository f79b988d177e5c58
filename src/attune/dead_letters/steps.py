"""Keeping dead letters, noting their replay, and letting them go."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from attune.bus.dead_letters import DeadLetter
from attune.dead_letters.model import KeptLetter
from attune.kernel.ids import DeadLetterId, IdentityId
from attune.store.database import Tx
from attune.store.schema import dead_letter

_LONGEST_WORD: Final = 500
_LONGEST_ERROR: Final = 2000
_LARGEST_COUNT: Final = 2**31 - 1


async def keep(tx: Tx, letter: DeadLetter, now: datetime) -> bool:
    """Keep a letter; False when it is kept already."""
    [new_id] = await tx.next_ids(dead_letter)
    kept = _kept(DeadLetterId(new_id), letter, now)
    return await tx.insert(dead_letter, [kept], skip_existing=True) == 1


async def mark_replayed(
    tx: Tx, letters: Sequence[DeadLetterId], by: IdentityId | None, now: datetime
) -> int:
    """Every replay counts, also of a letter that was replayed before."""
    return await tx.execute(
        """UPDATE dead_letter
              SET replayed_at = :now, replayed_by = :by, replay_count = replay_count + 1, updated = :now
            WHERE id = ANY(:letters::bigint[])""",
        letters=list(letters),
        by=by,
        now=now,
    )


async def delete_letter(tx: Tx, letter: DeadLetterId) -> bool:
    """False when there was none."""
    return await tx.execute("DELETE FROM dead_letter WHERE id = :letter", letter=letter) == 1


def _fingerprint(letter: DeadLetter) -> str:
    digest = hashlib.sha256()
    for part in (
        letter.queue.encode(errors="replace"),
        letter.died_at.isoformat().encode(),
        letter.body,
    ):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()


def _kept(id_: DeadLetterId, letter: DeadLetter, now: datetime) -> KeptLetter:
    return KeptLetter(
        id=id_,
        queue=_text(letter.queue, _LONGEST_WORD),
        reason=letter.reason.value,
        error=_text(letter.error, _LONGEST_ERROR) or None,
        message_id=str(letter.message_id) if letter.message_id else None,
        message_type=_text(letter.message_type or "", _LONGEST_WORD) or None,
        retry_count=int(min(max(letter.retry_count, 0), _LARGEST_COUNT)),
        body=letter.body,
        died_at=_moment(letter.died_at, now),
        fingerprint=_fingerprint(letter),
        created=now,
        updated=now,
    )


def _text(foreign: str, most: int) -> str:
    """Words of a foreign sender, as every database takes them: a letter that cannot be kept comes back for ever."""
    return foreign.replace("\0", "\ufffd")[:most].encode(errors="replace").decode()


def _moment(foreign: datetime, otherwise: datetime) -> datetime:
    """A time without a zone is taken for UTC; one that UTC does not have is replaced."""
    if foreign.tzinfo is None:
        return foreign.replace(tzinfo=UTC)
    try:
        return foreign.astimezone(UTC)
    except OverflowError:
        return otherwise
