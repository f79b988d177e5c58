"""What an execution has written so far: from its live pieces while it runs, from its result afterwards."""

from collections.abc import Sequence
from typing import Final

import msgspec

from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.store.database import Tx

_STATE: Final = """
    SELECT status, attempt, CASE WHEN status = ANY(:ended::text[]) THEN result ->> :stream::text END AS text
      FROM execution WHERE id = :id
"""
_PIECES: Final = """
    SELECT begins_at, text FROM execution_output
     WHERE execution = :id AND stream = :stream AND attempt = :attempt
       AND begins_at >= coalesce((SELECT max(o.begins_at) FROM execution_output o
                                   WHERE o.execution = :id AND o.stream = :stream AND o.attempt = :attempt
                                     AND o.begins_at <= :offset), 0)
     ORDER BY begins_at
"""
_FORGET: Final = "DELETE FROM execution_output WHERE execution = ANY(:ids::bigint[])"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """`text` begins at byte `begins_at` of its UTF-8 form. `attempt` tells output of different attempts apart."""

    status: ExecutionStatus
    attempt: int
    begins_at: int
    text: bytes

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def ends_at(self) -> int:
        return self.begins_at + len(self.text)


class _State(msgspec.Struct, frozen=True):
    status: ExecutionStatus
    attempt: int
    text: str | None


class _Piece(msgspec.Struct, frozen=True):
    begins_at: int
    text: str


async def written_since(
    tx: Tx, execution_id: ExecutionId, stream: str, offset: int, attempt: int | None = None
) -> Written:
    """What there is from `offset` on. Where another attempt than `attempt` is under way, all of its output."""
    state = await tx.first(_State, _STATE, id=execution_id, stream=stream, ended=sorted(TERMINAL))
    if state is None:
        raise NotFound(f"There is no execution {execution_id}.", id=execution_id)
    start = offset if attempt in (None, state.attempt) else 0
    if state.status in TERMINAL:
        text = (state.text or "").encode()[start:]
    else:
        pieces = await tx.all(
            _Piece, _PIECES, id=execution_id, stream=stream, attempt=state.attempt, offset=start
        )
        text = _joined(pieces, start)
    return Written(status=state.status, attempt=state.attempt, begins_at=start, text=text)


def _joined(pieces: list[_Piece], start: int) -> bytes:
    """Up to the first gap: what comes after it is not known to follow."""
    found = b""
    at = pieces[0].begins_at if pieces else start
    first = at
    for piece in pieces:
        if piece.begins_at != at:
            break
        encoded = piece.text.encode()
        found += encoded
        at += len(encoded)
    return found[max(start - first, 0) :] if first <= start else b""


async def forget_output(tx: Tx, ids: Sequence[ExecutionId]) -> None:
    """The live pieces of what has ended, or begins again."""
    if ids:
        await tx.execute(_FORGET, ids=sorted(ids))
