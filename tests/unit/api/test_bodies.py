"""JSON bodies: what is read, what is malformed, what nobody could keep."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.api.bodies import DEEPEST, decoded
from attune.kernel.errors import InvalidInput

PLAIN = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(
    allow_nan=False, allow_infinity=False
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))  # fmt: skip
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\\u0{}[]"), inner)
)


@given(JSON)
def test_what_can_be_kept_is_read_as_it_is(value: Any) -> None:
    assert decoded(json.dumps(value).encode()) == value
    assert decoded(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_our_words(body: bytes) -> None:
    try:
        decoded(body)
    except (InvalidInput, json.JSONDecodeError) as error:
        assert str(error)


@given(st.text(st.sampled_from('{}[]",:\\u0d8e1-.N ')))
def test_any_text_is_read_or_refused_in_our_words(body: str) -> None:
    try:
        decoded(body.encode())
    except (InvalidInput, json.JSONDecodeError) as error:
        assert str(error)


def test_a_long_place_is_cut() -> None:
    body = json.dumps({"x" * 5000: "\0"}).encode()
    with pytest.raises(InvalidInput) as refused:
        decoded(body)
    assert len(refused.value.message) < 300


def test_the_deepest_that_is_taken_is_told() -> None:
    decoded(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(InvalidInput, match=f"more than {DEEPEST} deep"):
        decoded(b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2))
