"""Tokens: JWT signed with HS256. Whoever has the secret can make one, and needs nothing else for it."""

import hashlib
from collections import OrderedDict
from typing import Any, Final

import jwt
import msgspec
from jwt.algorithms import HMACAlgorithm
from pydantic import SecretStr

from attune.identities.model import Claims, TokenPair, TokenType
from attune.kernel.clock import Clock
from attune.kernel.errors import Unauthenticated
from attune.kernel.ids import IdentityId, Ids

ACCESS_SECONDS: Final = 3600
REFRESH_SECONDS: Final = 7 * 24 * 3600

_ALGORITHM: Final = "HS256"
_JTI_BYTES: Final = 12
_KEPT_AT_MOST: Final = 4096
_REFUSAL: Final = "The token is not valid, or it has expired."


class _Hs256(HMACAlgorithm):
    """Takes any secret: a short one is told once, at start, and not by a warning with each token."""

    def prepare_key(self, key: str | bytes) -> bytes:
        return key.encode() if isinstance(key, str) else key

    def check_key_length(self, key: bytes) -> str | None:  # noqa: ARG002
        return None


class Tokens:
    def __init__(self, secret: SecretStr, clock: Clock, ids: Ids) -> None:
        self._secret = secret
        self._clock = clock
        self._ids = ids
        self._jws = jwt.PyJWS(algorithms=[])
        self._jws.register_algorithm(_ALGORITHM, _Hs256(hashlib.sha256))
        self._decoder = msgspec.json.Decoder(Claims)
        self._proven: OrderedDict[str, Claims] = OrderedDict()

    def pair(self, identity: IdentityId, login: str) -> TokenPair:
        return TokenPair(
            self.issue(identity, login, TokenType.ACCESS, ACCESS_SECONDS),
            self.issue(identity, login, TokenType.REFRESH, REFRESH_SECONDS),
            ACCESS_SECONDS,
        )

    def issue(
        self,
        identity: IdentityId,
        login: str,
        token_type: TokenType,
        seconds: int,
        *,
        scope: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        now = int(self._clock.now().timestamp())
        claims = Claims(
            sub=str(identity),
            login=login,
            token_type=token_type,
            iat=now,
            exp=now + seconds,
            jti=self._ids.token(size=_JTI_BYTES),
            scope=scope,
            metadata=metadata,
        )
        return self._jws.encode(
            msgspec.json.encode(claims), self._secret.get_secret_value(), _ALGORITHM
        )

    def read(self, token: str, *accepted: TokenType) -> Claims:
        """What a token says. One sentence for every fault: which one it was helps only a forger."""
        claims = self._proven.get(token) or self._keep(token, self._verified(token))
        if claims.exp <= self._clock.now().timestamp():
            self._proven.pop(token, None)
            raise Unauthenticated(_REFUSAL)
        if claims.token_type not in accepted:
            raise Unauthenticated(_REFUSAL)
        return claims

    def _keep(self, token: str, claims: Claims) -> Claims:
        """A signature stays what it is. Only what was proven is kept, so nobody without the secret fills this."""
        if len(self._proven) >= _KEPT_AT_MOST:
            self._proven.popitem(last=False)
        self._proven[token] = claims
        return claims

    def _verified(self, token: str) -> Claims:
        # A padded text would be another spelling of the same signature.
        if not token.isascii() or "=" in token:
            raise Unauthenticated(_REFUSAL)
        secret = self._secret.get_secret_value()
        try:
            return self._decoder.decode(self._jws.decode(token, secret, [_ALGORITHM]))
        except (jwt.PyJWTError, msgspec.MsgspecError) as error:
            raise Unauthenticated(_REFUSAL) from error
