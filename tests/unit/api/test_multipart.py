"""Forms are read alike however they are cut into pieces, and broken ones are refused."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import Request

from attune.api.errors import TooLarge, WrongMedia, WrongRequest
from attune.api.multipart import Form, flag, read_form
from attune.kernel.errors import AttuneError, InvalidInput

BODY = (
    b"a preamble\r\n"
    b'--b\r\nContent-Disposition: form-data; name="force"\r\n\r\ntrue\r\n'
    b'--b \t\r\ncontent-disposition: form-data; name="pack"; filename="x; y.gz"\r\n'
    b"Content-Type: application/gzip\r\n\r\n\r\n--a\r\n-\r\n--\r\n\x00\xff\r\n"
    b'--b\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n'
    b"--b--\r\nan epilogue --b\r\n"
)
FILE = b"\r\n--a\r\n-\r\n--\r\n\x00\xff"


async def read(pieces: Iterable[bytes], kind: str = "multipart/form-data; boundary=b") -> Form:
    waiting = iter(pieces)

    async def receive() -> dict[str, Any]:
        piece = next(waiting, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    scope = {"type": "http", "headers": [(b"content-type", kind.encode())]}
    return await read_form(Request(scope, receive), "pack", 1000)


def cuts(body: bytes, seed: int) -> list[bytes]:
    source = random.Random(seed)
    places = sorted(source.randrange(len(body)) for _ in range(source.randrange(40)))
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]


async def test_a_form_is_the_same_however_it_is_cut() -> None:
    for pieces in ([BODY], [bytes([each]) for each in BODY], *(cuts(BODY, n) for n in range(300))):
        form = await read(pieces)
        assert form.texts == {"force": "true", "empty": ""}
        assert form.file is not None
        assert form.file.read() == FILE
        form.close()


async def test_a_quoted_boundary_is_understood() -> None:
    form = await read([BODY.replace(b"--b", b"--b c")], 'multipart/form-data; boundary="b c"')
    assert form.texts["force"] == "true"
    form.close()


def part(header: bytes, content: bytes = b"x") -> bytes:
    return b"--b\r\n" + header + b"\r\n\r\n" + content + b"\r\n"


PACK = b'Content-Disposition: form-data; name="pack"'
TEXT = b'Content-Disposition: form-data; name="force"'
END = b"--b--\r\n"

BROKEN: list[tuple[bytes, type[AttuneError]]] = [
    (b"", WrongRequest),
    (b"nonsense", WrongRequest),
    (BODY[:-40], WrongRequest),
    (part(PACK), WrongRequest),
    (part(b"Content-Disposition: form-data") + END, WrongRequest),
    (part(b"Content-Type: text/plain") + END, WrongRequest),
    (b"--b\r\n\r\n\r\nx\r\n" + END, WrongRequest),
    (b"--bx\r\n" + PACK, WrongRequest),
    (b"--b\r\n" + b"x" * 9000, WrongRequest),
    (b"--b" + b" " * 9000, WrongRequest),
    (part(TEXT) * 51 + END, WrongRequest),
    (part(TEXT, b"x" * 70_000) + END, InvalidInput),
    (part(PACK) * 2 + END, InvalidInput),
    (part(PACK, b"x" * 1001) + END, TooLarge),
]


@pytest.mark.parametrize(("body", "refusal"), BROKEN)
async def test_a_broken_form_is_refused(body: bytes, refusal: type[AttuneError]) -> None:
    for seed in range(5):
        with pytest.raises(refusal):
            await read(cuts(body, seed) if body else [])


async def test_another_kind_of_body_is_refused() -> None:
    for kind in ("application/json", "multipart/mixed; boundary=b", "", "multipart/form-data\x00"):
        with pytest.raises((WrongMedia, WrongRequest)):
            await read([BODY], kind)


def test_a_flag_is_a_word() -> None:
    for word, expected in (("True", True), ("1", True), ("no", False), ("", False)):
        assert flag(Form({"force": word}), "force") is expected
    assert flag(Form(), "force") is False
    with pytest.raises(InvalidInput, match="force"):
        flag(Form({"force": "perhaps"}), "force")
