"""Reads multipart/form-data as it arrives: one file to disk, the other fields as short texts.

A form is read by nobody before its route asks for it, so whoever may not upload costs nothing.
"""

import tempfile
from dataclasses import dataclass, field
from email.message import Message
from enum import Enum, auto
from typing import BinaryIO, Final, cast

from fastapi import Request
from starlette.requests import ClientDisconnect

from attune.api.errors import TooLarge, WrongMedia, WrongRequest
from attune.kernel.errors import InvalidInput

_IN_MEMORY: Final = 1024 * 1024
_HEADER_BYTES: Final = 8192
_TEXT_BYTES: Final = 65_536
_MOST_PARTS: Final = 50
_LONGEST_BOUNDARY: Final = 70


@dataclass
class Form:
    """`file` is the content of the part that was asked for, at its beginning; null where it did not come."""

    texts: dict[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


async def read_form(request: Request, file_field: str, most_bytes: int) -> Form:
    reader = _Reader(_boundary(request), file_field, most_bytes)
    try:
        async for chunk in request.stream():
            reader.feed(chunk)
        reader.finish()
    except BaseException as error:
        reader.form.close()
        if isinstance(error, ClientDisconnect):
            raise WrongRequest("The form ended before its end.") from error
        raise
    return reader.form


def flag(form: Form, name: str) -> bool:
    """A field that says yes or no; absent is no."""
    word = form.texts.get(name, "").strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("", "false", "0", "no", "off"):
        return False
    raise InvalidInput(f"{name}: must be true or false", field=name)


def _boundary(request: Request) -> bytes:
    message = Message()
    message["content-type"] = request.headers.get("content-type", "")
    boundary = message.get_param("boundary")
    if message.get_content_type() != "multipart/form-data":
        raise WrongMedia("This path reads multipart/form-data.", field="Content-Type")
    if not isinstance(boundary, str) or not 0 < len(boundary) <= _LONGEST_BOUNDARY:
        raise WrongRequest("The form's content type names no boundary.", field="Content-Type")
    return boundary.encode(errors="replace")


class _State(Enum):
    DATA = auto()
    DELIMITER = auto()
    HEADERS = auto()
    END = auto()


class _Reader:
    """Holds no more than a header, or the length of a delimiter, of what it was fed."""

    def __init__(self, boundary: bytes, file_field: str, most_bytes: int) -> None:
        self.form = Form()
        self._delimiter = b"\r\n--" + boundary
        self._file_field = file_field
        self._most_bytes = most_bytes
        self._buffer = bytearray(b"\r\n")  # so that the first delimiter looks like the others
        self._state = _State.DATA
        self._name: str | None = None  # None for what comes before the first part
        self._text = bytearray()
        self._size = 0
        self._parts = 0

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk
        while self._step():
            pass

    def finish(self) -> None:
        if self._state is not _State.END:
            raise WrongRequest("The form ends before its last boundary.")
        if self.form.file is not None:
            self.form.file.seek(0)

    def _step(self) -> bool:
        """Take what can be taken; False when more must arrive first."""
        match self._state:
            case _State.DATA:
                return self._take_data()
            case _State.DELIMITER:
                return self._take_delimiter()
            case _State.HEADERS:
                return self._take_headers()
            case _State.END:
                self._buffer.clear()
                return False

    def _take_data(self) -> bool:
        end = self._buffer.find(self._delimiter)
        sure = end if end >= 0 else max(0, len(self._buffer) - len(self._delimiter) + 1)
        self._write(bytes(self._buffer[:sure]))
        del self._buffer[:sure]
        if end < 0:
            return False
        del self._buffer[: len(self._delimiter)]
        self._end_part()
        self._state = _State.DELIMITER
        return True

    def _take_delimiter(self) -> bool:
        if self._buffer.startswith(b"--"):
            self._state = _State.END
            return True
        end = self._buffer.find(b"\r\n")
        if end < 0:
            self._check_bounded()
            return False
        if self._buffer[:end].strip(b" \t"):
            raise WrongRequest("The form has a broken boundary.")
        del self._buffer[:end]  # the line's end stays: headers may be none
        self._state = _State.HEADERS
        return True

    def _take_headers(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            self._check_bounded()
            return False
        header = bytes(self._buffer[2:end])
        del self._buffer[: end + 4]
        self._begin_part(_name_in(header))
        self._state = _State.DATA
        return True

    def _check_bounded(self) -> None:
        if len(self._buffer) > _HEADER_BYTES:
            raise WrongRequest("The form has a header that is too long.")

    def _begin_part(self, name: str) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise WrongRequest(f"The form has more than {_MOST_PARTS} fields.")
        self._name, self._size = name, 0
        self._text.clear()
        if name == self._file_field:
            if self.form.file is not None:
                raise InvalidInput(f"{name}: must be given once", field=name)
            file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - `Form` closes it
            self.form.file = cast(BinaryIO, file)

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        if self._name is None or not data:
            return
        if self._name != self._file_field or self.form.file is None:
            if self._size > _TEXT_BYTES:
                raise InvalidInput(f"{self._name}: is too long", field=self._name)
            self._text += data
        elif self._size > self._most_bytes:
            raise TooLarge(
                f"{self._name}: is larger than {self._most_bytes} bytes.", field=self._name
            )
        else:
            self.form.file.write(data)

    def _end_part(self) -> None:
        if self._name is not None and self._name != self._file_field:
            self.form.texts[self._name] = self._text.decode(errors="replace")
        self._name = None


def _name_in(header: bytes) -> str:
    message = Message()
    for line in header.decode(errors="replace").split("\r\n"):
        title, colon, value = line.partition(":")
        if colon and title.strip().lower() == "content-disposition":
            message["content-disposition"] = value.strip()
    name = message.get_param("name", header="content-disposition")
    if not isinstance(name, str) or not name:
        raise WrongRequest("The form has a part without a name.")
    return name
