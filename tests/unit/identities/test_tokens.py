"""A token is believed when its signature, its time and its kind are right, and for nothing else."""

import base64
import hashlib
import hmac
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from attune.identities import tokens as tokens_module
from attune.identities.model import TokenType
from attune.identities.tokens import ACCESS_SECONDS, REFRESH_SECONDS, Tokens
from attune.kernel.errors import Unauthenticated
from attune.kernel.ids import IdentityId, Ids
from attune.simulation.clock import START, ManualClock

SECRET = "a secret"
NOW = int(START.timestamp())
CLAIMS = {"sub": "7", "login": "ann", "token_type": "access", "iat": NOW, "exp": NOW + 60}


def tokens(clock: ManualClock | None = None, secret: str = SECRET) -> Tokens:
    return Tokens(SecretStr(secret), clock or ManualClock(), Ids(random.Random(1)))


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def foreign(claims: Any, header: Any = None, secret: str = SECRET) -> str:
    """A token made by hand, as another program with the secret would."""
    head = part(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode())
    signed = f"{head}.{part(json.dumps(claims).encode())}"
    signature = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{part(signature)}"


def claims_in(token: str) -> dict[str, Any]:
    middle = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4))))


def refused(token: str, *accepted: TokenType) -> str:
    with pytest.raises(Unauthenticated) as caught:
        tokens().read(token, *(accepted or (TokenType.ACCESS,)))
    return caught.value.message


def test_a_token_has_the_claims_of_the_contract() -> None:
    pair = tokens().pair(IdentityId(7), "ann")
    access, refresh = claims_in(pair.access_token), claims_in(pair.refresh_token)
    assert access.pop("jti") != refresh.pop("jti")
    kept = {"sub": "7", "login": "ann", "iat": NOW}
    assert access == {**kept, "token_type": "access", "exp": NOW + ACCESS_SECONDS}
    assert refresh == {**kept, "token_type": "refresh", "exp": NOW + REFRESH_SECONDS}
    assert pair.expires_in == 3600
    assert pair.access_token not in repr(pair)


def test_scope_and_metadata_come_back_as_they_went() -> None:
    made = tokens().issue(
        IdentityId(7),
        "execution:5",
        TokenType.EXECUTION,
        60,
        scope="execution",
        metadata={"execution_id": 5, "permission_set_refs": ["core.viewer"]},
    )
    claims = tokens().read(made, TokenType.EXECUTION)
    assert (claims.identity, claims.login, claims.scope) == (7, "execution:5", "execution")
    assert claims.metadata == {"execution_id": 5, "permission_set_refs": ["core.viewer"]}


def test_two_tokens_of_the_same_second_differ() -> None:
    maker = tokens()
    assert maker.pair(IdentityId(7), "ann") != maker.pair(IdentityId(7), "ann")


def test_a_token_of_any_holder_of_the_secret_is_valid() -> None:
    extra = {"aud": "others", "iss": "others", "unknown": [1]}
    claims = tokens().read(foreign({**CLAIMS, **extra}), TokenType.ACCESS)
    assert (claims.identity, claims.login) == (7, "ann")


async def test_a_token_lives_until_its_very_second() -> None:
    clock = ManualClock()
    maker = tokens(clock)
    made = maker.pair(IdentityId(7), "ann").access_token
    await clock.advance(ACCESS_SECONDS - 1)
    assert maker.read(made, TokenType.ACCESS).login == "ann"
    await clock.advance(1)
    with pytest.raises(Unauthenticated):
        maker.read(made, TokenType.ACCESS)


def test_a_token_that_was_believed_once_is_not_proven_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maker = tokens()
    made = maker.pair(IdentityId(7), "ann").access_token
    first = maker.read(made, TokenType.ACCESS)
    monkeypatch.setattr(maker, "_verified", lambda _token: pytest.fail("It was proven again."))
    assert maker.read(made, TokenType.ACCESS) == first


async def test_a_token_that_was_believed_before_still_ends() -> None:
    clock = ManualClock()
    maker = tokens(clock)
    made = maker.pair(IdentityId(7), "ann").access_token
    assert maker.read(made, TokenType.ACCESS).login == "ann"
    await clock.advance(ACCESS_SECONDS)
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            maker.read(made, TokenType.ACCESS)
    assert made not in maker._proven


def test_a_token_that_was_believed_before_is_still_of_its_kind() -> None:
    maker = tokens()
    made = maker.pair(IdentityId(7), "ann").refresh_token
    assert maker.read(made, TokenType.REFRESH).login == "ann"
    with pytest.raises(Unauthenticated):
        maker.read(made, TokenType.ACCESS)


def test_what_others_believe_says_nothing_to_one_with_another_secret() -> None:
    made = foreign(CLAIMS)
    assert tokens().read(made, TokenType.ACCESS).login == "ann"
    with pytest.raises(Unauthenticated):
        tokens(secret="another secret").read(made, TokenType.ACCESS)


def test_what_is_not_believed_is_not_kept_and_the_rest_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens_module, "_KEPT_AT_MOST", 3)
    maker = tokens()
    for wrong in (foreign(CLAIMS, secret="another"), foreign(CLAIMS, {"alg": "none"}), "no token"):
        with pytest.raises(Unauthenticated):
            maker.read(wrong, TokenType.ACCESS)
    assert not maker._proven
    made = [maker.pair(IdentityId(7), "ann").access_token for _ in range(5)]
    for each in made * 2:
        assert maker.read(each, TokenType.ACCESS).identity == 7
    assert set(maker._proven) == set(made[-3:])


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "HS512"},
        {"alg": "RS256"},
        {"alg": ""},
        {"alg": ["HS256"]},
        {"typ": "JWT"},
        {"alg": "HS256", "crit": ["exp"]},
        {"alg": "HS256", "b64": False, "crit": ["b64"]},
        ["HS256"],
    ],
)
def test_another_algorithm_is_refused(header: Any) -> None:
    refused(foreign(CLAIMS, header))
    refused(foreign(CLAIMS, header).rpartition(".")[0] + ".")


@pytest.mark.parametrize("missing", sorted(CLAIMS))
def test_a_token_without_one_of_its_claims_is_refused(missing: str) -> None:
    refused(foreign({name: value for name, value in CLAIMS.items() if name != missing}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"sub": 7},
        {"sub": "-7"},
        {"sub": "seven"},
        {"sub": "7\n"},
        {"sub": "9" * 40},
        {"login": None},
        {"token_type": "root"},
        {"exp": NOW},
        {"exp": str(NOW + 60)},
        {"exp": True},
        {"exp": None},
        {"iat": "today"},
        {"scope": 1},
        {"metadata": "all"},
    ],
)
def test_a_claim_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    refused(foreign({**CLAIMS, **wrong}))


@pytest.mark.parametrize("claims", [[], "text", None, 7])
def test_a_token_that_is_no_object_is_refused(claims: Any) -> None:
    refused(foreign(claims))


def test_each_kind_is_accepted_only_where_it_is_meant() -> None:
    pair = tokens().pair(IdentityId(7), "ann")
    refused(pair.refresh_token, TokenType.ACCESS, TokenType.EXECUTION, TokenType.WORKER)
    refused(pair.access_token, TokenType.REFRESH)
    assert tokens().read(pair.refresh_token, TokenType.REFRESH).identity == 7


def test_a_token_of_another_secret_is_refused() -> None:
    refused(foreign(CLAIMS, secret="another secret"))


def test_every_refusal_has_the_same_words() -> None:
    said = {
        refused(foreign(CLAIMS, secret="another secret")),
        refused(foreign({**CLAIMS, "exp": NOW})),
        refused(foreign(CLAIMS, {"alg": "none"})),
        refused("no token at all"),
    }
    assert said == {"The token is not valid, or it has expired."}


def test_a_secret_that_looks_like_a_key_file_signs_as_well() -> None:
    maker = tokens(secret="-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----\n")
    made = maker.pair(IdentityId(7), "ann").access_token
    assert maker.read(made, TokenType.ACCESS).identity == 7


GOOD = tokens().pair(IdentityId(7), "ann").access_token
CHARACTERS = st.characters(max_codepoint=0x17F)


@given(st.integers(0, len(GOOD) - 1), CHARACTERS)
def test_any_change_of_a_byte_is_refused(position: int, character: str) -> None:
    changed = GOOD[:position] + character + GOOD[position + 1 :]
    if changed != GOOD:
        refused(changed)


def test_another_spelling_of_the_same_signature_is_refused() -> None:
    """The last character of 43 holds four bits of the signature and two that say nothing."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for last in alphabet.replace(GOOD[-1], ""):
        refused(GOOD[:-1] + last)
    for padded in (GOOD + "=", GOOD + "==", GOOD + "\n", " " + GOOD):
        refused(padded)


@given(st.integers(0, len(GOOD)), st.text(CHARACTERS, min_size=1, max_size=4))
def test_anything_put_in_is_refused(position: int, text: str) -> None:
    refused(GOOD[:position] + text + GOOD[position:])


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 5))
def test_anything_taken_out_is_refused(position: int, count: int) -> None:
    refused(GOOD[:position] + GOOD[position + count :])


@given(st.text(max_size=200))
def test_any_text_is_refused_in_words(text: str) -> None:
    refused(text)
