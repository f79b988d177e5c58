"""Regular expressions and wildcards in linear time: RE2 never backtracks, so no pattern can stop the engine.

Its syntax is that of Go and Rust: no look-around and no references back, which cannot be matched in linear time.
A pattern matches anywhere in the text unless it says ^ or $.
"""

import re
from functools import lru_cache

import re2  # type: ignore[import-untyped]

from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError, Unfit

LONGEST_PATTERN = 2000
_MEMORY = 1 << 20
_INSTRUCTIONS_PER_UNIT = 4

_JOKERS = {"*": ".*", "?": "."}
# The first character of a set is never its end: []] is the set of a bracket.
_SET = re.compile(r"\[(?P<sign>!?)(?P<kept>.[^\]]*)\]", re.DOTALL)


class Pattern:
    """A compiled pattern; the budget pays for each search in proportion to the text and to the pattern."""

    __slots__ = ("_regexp", "_units")

    def __init__(
        self, source: str, *, ignore_case: bool = False, across_lines: bool = False
    ) -> None:
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        options.never_capture = True
        options.case_sensitive = not ignore_case
        options.dot_nl = across_lines
        try:
            self._regexp = re2.compile(source, options)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace")
            raise ExpressionError(f"the pattern {source[:80]!r} is not valid: {reason}") from None
        except UnicodeEncodeError:
            raise ExpressionError("the pattern is no valid Unicode") from None
        self._units = 1 + self._regexp.programsize // _INSTRUCTIONS_PER_UNIT

    def found_in(self, text: str, budget: Budget) -> bool:
        budget.spend(len(text) * self._units)
        try:
            return self._regexp.search(text) is not None
        except UnicodeEncodeError:
            raise Unfit("the text is no valid Unicode") from None


@lru_cache(maxsize=256)
def compile_pattern(source: str, *, ignore_case: bool = False) -> Pattern:
    if len(source) > LONGEST_PATTERN:
        raise ExpressionError(f"a pattern has at most {LONGEST_PATTERN} characters")
    return Pattern(source, ignore_case=ignore_case)


@lru_cache(maxsize=256)
def compile_wildcard(source: str) -> Pattern:
    """`*`, `?`, `[abc]`, `[a-z]` and `[!abc]`, over the whole text, as a shell matches file names."""
    if len(source) > LONGEST_PATTERN:
        raise ExpressionError(f"a wildcard has at most {LONGEST_PATTERN} characters")
    parts = []
    position = 0
    while position < len(source):
        part, position = _translate(source, position)
        parts.append(part)
    return Pattern(rf"\A{''.join(parts)}\z", across_lines=True)


def _translate(source: str, position: int) -> tuple[str, int]:
    """The pattern for what stands at `position`, and where the rest begins."""
    character = source[position]
    if character in _JOKERS:
        return _JOKERS[character], position + 1
    members = _SET.match(source, position)
    if members is None:
        return re.escape(character), position + 1
    sign = "^" if members["sign"] else ""
    kept = "".join(c if c == "-" else re.escape(c) for c in members["kept"])
    return f"[{sign}{kept}]", members.end()
