"""Refs: the names that people and files use. `pack`, or `pack.name` for what is in a pack."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from attune.kernel.errors import InvalidInput

LONGEST: Final = 255

_WORD: Final = "[a-z0-9][a-z0-9_-]*"
_PACK = re.compile(_WORD, re.ASCII)
_MEMBER = re.compile(rf"{_WORD}(\.{_WORD})+", re.ASCII)
_LETTERS: Final = "lower case letters, digits, _ and -"
_SEPARATORS = re.compile(r"[_\-.\s]+")


def pack_ref_fault(ref: str) -> str | None:
    """Which rule a pack's ref breaks, or None."""
    if len(ref) > LONGEST or not _PACK.fullmatch(ref):
        return f"{shown(ref)} is not a pack's ref: it has {_LETTERS}, without a dot"
    if ref.isdigit():
        return f"{shown(ref)} would be taken for an id"
    return None


def member_ref_fault(ref: str, pack_ref: str) -> str | None:
    """Which rule the ref of something in `pack_ref` breaks, or None."""
    if len(ref) > LONGEST or not _MEMBER.fullmatch(ref):
        return f"{shown(ref)} is not a ref: it has the form pack.name, of {_LETTERS}"
    if not ref.startswith(f"{pack_ref}."):
        return f"{shown(ref)} must start with the pack's own ref, '{pack_ref}.'"
    return None


def check_pack_ref(ref: str) -> None:
    _refuse(pack_ref_fault(ref))


def check_member_ref(ref: str, pack_ref: str) -> None:
    _refuse(member_ref_fault(ref, pack_ref))


def pack_part(ref: str) -> str:
    return ref.partition(".")[0]


def label_from(name: str) -> str:
    """`send_mail` is shown as "Send Mail" where nobody gave it a label."""
    words = _SEPARATORS.split(name.rpartition(".")[2] or name)
    return " ".join(word[:1].upper() + word[1:] for word in words if word) or name


def shown(word: str) -> str:
    """A word as an error quotes it: in quotes, and never a page long."""
    return repr(word if len(word) <= 80 else word[:77] + "...")


def unknown_word(word: str, known: Iterable[str], what: str = "word") -> str:
    """The fault of a word that is none of the known ones, with the one that was probably meant."""
    words = sorted(known)
    close = close_word(word, words)
    hint = f"did you mean '{close}'?" if close else f"known are {', '.join(words) or 'none'}"
    return f"unknown {what} {shown(word)}; {hint}"


def unknown_ref(ref: str, known: Iterable[str], noun: str) -> str:
    """The same for a ref, of which there may be too many to list them."""
    close = close_word(ref, known)
    return f"unknown {noun} {shown(ref)}" + (f"; did you mean '{close}'?" if close else "")


def close_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    return next(iter(difflib.get_close_matches(word[:80], sorted(known), n=1)), None)


def _refuse(fault: str | None) -> None:
    if fault:
        raise InvalidInput(f"ref: {fault}", field="ref")
