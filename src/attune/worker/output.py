"""What a process writes: kept up to a bound, told live, and always read, so that it never waits for us."""

import codecs
from collections.abc import Callable
from typing import Final

import structlog

from attune.worker.model import Stream

OnOutput = Callable[[Stream, str], None]

_Decoder: Final = codecs.getincrementaldecoder("utf-8")

_log = structlog.get_logger()


def unheard(_stream: Stream, _text: str) -> None:
    """For runs that nobody follows."""


class Output:
    """One stream. What `on_output` is told, piece by piece, is exactly what `text` gives at the end.

    Past the limit bytes are counted as gone and a notice takes their place, so memory and the number of
    calls are bounded whatever the process writes. Bytes that are not UTF-8 become U+FFFD, and so does NUL,
    which PostgreSQL cannot store in a text.
    """

    def __init__(self, stream: Stream, on_output: OnOutput, limit: int) -> None:
        self._stream = stream
        self._on_output = on_output
        self._limit = limit
        self._kept = bytearray()
        self._cut = False
        self._closed = False
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> None:
        if self._cut or self._closed:
            return
        room = self._limit - len(self._kept)
        piece = data[:room]
        self._kept += piece
        if self._decoder is None:
            self._decoder = _Decoder("replace")
        self._tell(self._decoder.decode(piece))
        if len(data) > room:
            self._cut = True
            self._tell(self._notice)

    def close(self) -> None:
        """No more will come: half a character at the end is told as what it is."""
        if self._decoder is not None and not self._cut and not self._closed:
            self._tell(self._decoder.decode(b"", final=True))
        self._closed = True

    def text(self) -> str:
        if not self._kept and not self._cut:
            return ""
        if not self._cut:
            return _storable(self._kept.decode("utf-8", "replace"))
        # Without the half of a character that may be its end.
        return _storable(_Decoder("replace").decode(bytes(self._kept))) + self._notice

    @property
    def _notice(self) -> str:
        megabytes = self._limit / (1024 * 1024)
        return f"\n[The rest of this output was cut: {megabytes:g} MB are kept.]\n"

    def _tell(self, text: str) -> None:
        if not text:
            return
        try:
            self._on_output(self._stream, _storable(text))
        except Exception:  # noqa: BLE001 - the edge of the loop: whoever listens must not stop the reading
            _log.exception("A listener to an action's output failed.", stream=self._stream)
            self._on_output = unheard


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd")
