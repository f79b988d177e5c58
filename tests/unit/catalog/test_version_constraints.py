"""Versions as programs print them, against constraints as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.version_constraints import constraint_fault, order_of, satisfies, version_in

NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)
PARTS = st.builds(
    lambda operator, numbers: operator + ".".join(map(str, numbers)),
    st.sampled_from(["", "==", "=", "!=", ">=", "<=", ">", "<", "^", "~"]),
    NUMBERS,
)


@pytest.mark.parametrize(
    ("constraint", "yes", "no"),
    [
        ("*", ["3.11.2", "", "unknown"], []),
        ("3.11", ["3.11", "3.11.9", "v3.11.0", "3.11.0rc1"], ["3.1", "3.12.0", "3.110.0", ""]),
        ("3.11.*", ["3.11.9"], ["3.12.0"]),
        ("3.x", ["3.12.0"], ["4.0"]),
        ("18", ["v18.19.0"], ["v20.11.1", "1.8"]),
        (">=3.10,<4", ["3.10.0", "3.13.1"], ["3.9.19", "4.0.0"]),
        (" >= 3.10 , < 4 ", ["3.10.0"], ["4.0.0"]),
        ("==3.11", ["3.11.4"], ["3.12"]),
        ("==3.11.4", ["3.11.4"], ["3.11.5"]),
        ("=20", ["20.1"], ["21"]),
        ("!=3.11", ["3.12.1"], ["3.11.4"]),
        (">3.11", ["3.12.0"], ["3.11.9"]),
        ("<=3.11", ["3.11.9", "3.1"], ["3.12.0"]),
        ("~=3.10", ["3.10.0", "3.12.1"], ["3.9", "4.0"]),
        ("~=3.10.2", ["3.10.2", "3.10.9"], ["3.10.1", "3.11.0"]),
        ("^1.2", ["1.2.0", "1.9"], ["1.1.9", "2.0"]),
        ("^0.2", ["0.2.5"], ["0.3.0", "0.1", "1.0"]),
        ("^0.0.3", ["0.0.3"], ["0.0.4"]),
        ("^0", ["0.9"], ["1.0"]),
        ("~1.2", ["1.2.0", "1.2.9"], ["1.3.0", "1.1"]),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3"]),
        ("~1", ["1.0", "1.9"], ["2.0"]),
        ("v20", ["v20.11.1"], ["v18.0.0"]),
        ("5", ["5.2.15(1)-release"], ["4.4.20(1)-release"]),
        (">=3,!=3.11", ["3.12", "3.10"], ["3.11.1", "2.7"]),
        ("nonsense", [], ["3.11", "nonsense"]),
    ],
)
def test_a_constraint_lets_some_versions_in(constraint: str, yes: list[str], no: list[str]) -> None:
    assert [one for one in yes if not satisfies(one, constraint)] == []
    assert [one for one in no if satisfies(one, constraint)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must name a version between commas; * means any version"),
        (">=3,", "must name a version between commas"),
        ("latest", "'latest' is no version constraint; use *, 3.11, >=3.10,<4"),
        (">=3 <4", "'>=3 <4' is no version constraint"),
        ("=>3", "'=>3' is no version constraint"),
        ("3.11-beta", "'3.11-beta' is no version constraint"),
        (">=3.*", "'>=3.*': .* goes with == and != only"),
        ("~=3", "'~=3': ~= needs two numbers at least, as in ~=3.0"),
        ("1" * 10, "is no version constraint"),
        ("1," * 200, "must have at most 200 characters"),
    ],
)
def test_what_is_no_constraint_is_told_with_the_rule(text: str, words: str) -> None:
    assert words in (constraint_fault(text) or "")


@given(st.lists(PARTS, min_size=1, max_size=4).map(",".join))
def test_whatever_is_made_of_the_operators_is_a_constraint(text: str) -> None:
    assert constraint_fault(text) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_nothing_that_anybody_writes_or_prints_is_an_accident(version: str, text: str) -> None:
    if constraint_fault(text) is not None:
        assert not satisfies(version, text)
    assert order_of(version) >= ()


@given(NUMBERS, NUMBERS)
def test_a_version_is_above_at_or_below_what_it_is_compared_with(
    numbers: list[int], others: list[int]
) -> None:
    version, other = ".".join(map(str, numbers)), ".".join(map(str, others))
    held = [sign for sign in ("<", "==", ">") if satisfies(version, sign + other)]
    assert len(held) == 1
    assert satisfies(version, f"<={other}") == (held[0] in "<==")
    assert satisfies(version, f">={other}") == (held[0] in (">", "=="))
    assert satisfies(version, f"!={other}") == (held[0] != "==")


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\nCopyright 2022", "5.2.15"),
        ("Python 3.13.0rc2", "3.13.0"),
        ("v20.11.1\n", "20.11.1"),
        ("This is perl 5, version 36, subversion 0 (v5.36.0) built for", "5.36.0"),
        ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", "3.1.2"),
        ("release 7", "7"),
        ("no version here", None),
    ],
)
def test_the_version_is_found_in_what_a_program_prints(printed: str, version: str | None) -> None:
    assert version_in(printed) == version


def test_versions_are_ordered_by_their_numbers() -> None:
    assert sorted(["3.9", "3.10", "v3.2"], key=order_of) == ["v3.2", "3.9", "3.10"]
