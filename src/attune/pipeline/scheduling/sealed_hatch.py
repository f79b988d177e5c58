"""The short way between processes: the hand-off travels in its order, sealed.

A hand-off holds parameters, which nobody who reads the broker may read. The key is of the installation, so nobody else can
make one up either, and it opens for the one process that it was sealed for.
"""

import base64
import hmac
import random
from collections.abc import Iterable
from typing import Final

import msgspec
import structlog
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from attune.kernel.ids import WorkerId
from attune.kernel.messages import ExecutionScheduled
from attune.pipeline.scheduling.hand_off import HandOff

LARGEST: Final = (
    16 * 1024
)  # bytes; what is larger is read from its row, and does not burden the broker
_PURPOSE: Final = b"attune hand-off"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HandOff).decode

_log = structlog.get_logger()


class SealedHatch:
    """`secret` is the installation's `security.encryption_key`."""

    def __init__(self, secret: str, source: random.Random) -> None:
        self._box = Aead(hmac.digest(secret.encode(), _PURPOSE, "sha256"))
        self._source = source
        self._own: bytes | None = None

    def open(self, worker: WorkerId, incarnation: str) -> None:
        self._own = _address(worker, incarnation)

    def close(self) -> None:
        self._own = None

    def put(self, worker: WorkerId, incarnation: str, hand_off: HandOff) -> str | None:
        content = _encode(hand_off)
        if len(content) > LARGEST:
            return None
        nonce = self._source.randbytes(Aead.NONCE_SIZE)
        sealed = self._box.encrypt(content, _address(worker, incarnation), nonce)
        return base64.b64encode(sealed).decode()

    def take(self, orders: Iterable[ExecutionScheduled]) -> list[HandOff]:
        found = (self._opened(one) for one in orders)
        return [one for one in found if one is not None]

    def _opened(self, order: ExecutionScheduled) -> HandOff | None:
        """What cannot be opened is of an earlier process of this name, of another key or a forgery: the rows tell."""
        if order.sealed is None or self._own is None:
            return None
        try:
            content = self._box.decrypt(base64.b64decode(order.sealed, validate=True), self._own)
            hand_off = _decode(content)
        except (CryptoError, ValueError) as error:
            _log.debug("A hand-off is read from its row.", reason=type(error).__name__)
            return None
        same = (hand_off.execution, hand_off.attempt) == (order.execution_id, order.attempt)
        return hand_off if same else None


def _address(worker: WorkerId, incarnation: str) -> bytes:
    return f"{worker}:{incarnation}".encode()
