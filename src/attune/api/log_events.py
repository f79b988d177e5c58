"""Output as events. Pure: where a client is, and what it is told next.

`waiting` says that there is nothing yet, `content` brings all that there is from the position asked for, `append`
what came since, `done` the status at the end. The id of an event is the position after its text, in bytes of UTF-8.
"""

from collections.abc import Iterator
from typing import Final

from fastapi.sse import format_sse_event

from attune.pipeline.executions.outputs import Written

PIECE_BYTES: Final = 256 * 1024


class LogPosition:
    """Where one client is. `attempt` is null until something was told."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.attempt: int | None = None
        self._word = "content"

    def told(self, found: Written) -> Iterator[bytes]:
        """The events for what was found, which begins where this is. Another attempt begins from the start."""
        first = self.attempt is None
        if found.attempt != self.attempt:
            self.attempt, self.offset, self._word = found.attempt, found.begins_at, "content"
        for piece in _pieces(_complete(found)):
            self.offset += len(piece)
            yield self._event(self._word, piece.decode(errors="replace"))
            self._word = "append"
        if found.ended:
            yield self._event("done", found.status)
        elif first and self._word == "content":
            yield format_sse_event(event="waiting", data_str="")

    def _event(self, word: str, text: str) -> bytes:
        return format_sse_event(event=word, data_str=text, id=str(self.offset))


def resumed(last_event_id: str | None, offset: int, farthest: int) -> int:
    """Whoever comes again by itself, as browsers do, names the last event and not an offset."""
    if last_event_id and last_event_id.isascii() and last_event_id.isdigit():
        return min(int(last_event_id[:19]), farthest)
    return offset


def _complete(found: Written) -> bytes:
    """An event cannot tell a carriage return from the end of a line, so one waits for what follows it."""
    waits = found.text.endswith(b"\r") and not found.ended
    return found.text[:-1] if waits else found.text


def _pieces(text: bytes) -> Iterator[bytes]:
    """In pieces that are whole characters."""
    start = 0
    while start < len(text):
        end = start + PIECE_BYTES
        while start < end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        yield text[start:end]
        start = end
