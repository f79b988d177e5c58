"""YAML is read as JSON data, as YAML 1.2 means it, and cannot be made to grow, recurse or construct."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.sources import documents
from attune.catalog.sources.documents import Unreadable, read_document


def test_scalars_are_what_yaml_1_2_says() -> None:
    text = b"""
country: no
switch: on
start: 12:30
mode: 0755
hex: 0x1f
day: 2024-05-06
yes: 1
200: ok
quoted: "5"
tagged: !!str 5
big: 1e3
half: .5
nothing:
tilde: ~
truth: true
"""
    assert read_document(text) == {
        "country": "no",
        "switch": "on",
        "start": "12:30",
        "mode": "0755",
        "hex": 31,
        "day": "2024-05-06",
        "yes": 1,
        "200": "ok",
        "quoted": "5",
        "tagged": "5",
        "big": 1000.0,
        "half": 0.5,
        "nothing": None,
        "tilde": None,
        "truth": True,
    }


@pytest.mark.parametrize("text", [b"", b"# only words\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_nothing(text: bytes) -> None:
    assert read_document(text) is None


def test_an_alias_stands_for_what_its_anchor_names() -> None:
    assert read_document(b"a: &x {n: 1}\nb: *x\n") == {"a": {"n": 1}, "b": {"n": 1}}


REFUSED = {
    b"a: 1\na: 2": "line 2: the key 'a' stands there twice",
    b"a: &x [*x]": "line 1: the alias 'x' has nothing to name",
    b"a: *x": "line 1: the alias 'x' has nothing to name",
    b"a: .inf": "line 1: '.inf' is not a number that JSON has",
    b"a: !!float nan": "line 1: 'nan' is not a number that JSON has",
    b"a: 9223372036854775808": "line 1: the number is too large",
    b"a: " + b"9" * 100_000: "line 1: the number is too large",
    b"a: !!python/object/apply:os.system [ls]": (
        "line 1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not known here"
    ),
    b"a: !!binary aGk=": "line 1: the tag 'tag:yaml.org,2002:binary' is not known here",
    b"a: !!set {b}": "line 1: the tag 'tag:yaml.org,2002:set' is not known here",
    b"a: !!int b": "line 1: 'b' is not an integer",
    b"a: !!bool b": "line 1: 'b' is neither true nor false",
    b'a: "\\0"': "line 1: the text holds a character that cannot be stored",
    b"<<: {a: 1}": "line 1: merge keys (<<) are not known here; write the fields out",
    b"? [a]\n: b": "line 1: a key must be plain text",
    b"a\n---\nb": "line 2: a file holds one document, this is a second",
    b"a: b: c": "line 1: mapping values are not allowed in this context",
    b"[" * 51 + b"]" * 51: "line 1: nested more than 50 deep",
    b"\xff\xfe": "the file is not UTF-8 (byte 0)",
    b"#" * 1_000_001: "the file is larger than 1000000 bytes",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20].decode(errors="replace"))
def test_each_of_these_is_refused_with_its_line(text: bytes) -> None:
    with pytest.raises(Unreadable) as refusal:
        read_document(text)
    assert str(refusal.value) == REFUSED[text]


def test_an_alias_bomb_is_refused_while_it_is_small() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(Unreadable, match="more than 100000 values, aliases counted in full"):
        read_document("\n".join(lines).encode())


def test_deep_nesting_costs_neither_time_nor_stack() -> None:
    with pytest.raises(Unreadable, match="nested more than 50 deep"):
        read_document(b"- " * 400_000)


json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff")
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<: ", max_size=5), inner)
    ),
    max_leaves=20,
)


@given(json_data)
def test_json_is_yaml(value: Any) -> None:
    text = msgspec.json.encode(value)
    assert read_document(text) == msgspec.json.decode(text)


pieces = st.sampled_from(
    [
        "a",
        ":",
        " ",
        "\n",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&x ",
        "*x",
        "!!",
        "int",
        "'",
        '"',
        "|",
        ">",
        "?",
        "<<",
        "#",
        "\t",
    ]
)


@given(st.binary(max_size=200) | st.lists(pieces, max_size=40).map(lambda p: "".join(p).encode()))
def test_garbage_is_read_or_refused_and_nothing_else(text: bytes) -> None:
    try:
        msgspec.json.encode(read_document(text))
    except Unreadable as refusal:
        assert str(refusal)


def test_without_the_c_library_it_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_LOADER", yaml.SafeLoader)
    assert read_document(b"a: &x [1, no]\nb: *x\n") == {"a": [1, "no"], "b": [1, "no"]}
    with pytest.raises(Unreadable, match="line 1: mapping values are not allowed"):
        read_document(b"a: b: c")
