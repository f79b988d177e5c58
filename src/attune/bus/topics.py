"""Topic patterns of AMQP: `*` stands for one word, `#` for any number of them, none included."""

from collections.abc import Sequence


def matches(pattern: str, routing_key: str) -> bool:
    return _match(pattern.split("."), routing_key.split("."))


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    head, rest = pattern[0], pattern[1:]
    if head == "#":
        return any(_match(rest, words[taken:]) for taken in range(len(words) + 1))
    if not words or head not in ("*", words[0]):
        return False
    return _match(rest, words[1:])
