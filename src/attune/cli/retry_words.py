"""Retries and limits of an action as people read them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attune.cli.rendering import duration

_SHOWN_STEPS: Final = 3
_CAUSES: Final = {
    "failed": "a failure",
    "timeout": "a timeout",
    "not_started": "no start in time",
    "worker_lost": "the loss of its worker",
}
_LIMITS: Final = {
    "cpu_seconds": "{:g} s of CPU time",
    "memory_mb": "{:g} MB of memory",
    "open_files": "{:g} open files",
    "processes": "{:g} processes",
    "output_mb": "{:g} MB of each output kept",
}
_LOST: Final = {
    "retry": "another worker takes over, while retries are left",
    "fail": "it is abandoned, so that it never runs twice",
}


def retries_in_words(count: int | None, retry: Mapping[str, Any] | None) -> str | None:
    """None where the server did not say."""
    if count is None:
        return None
    if count == 0:
        return "none"
    how = retry or {}
    parts = [f"up to {count}, {_delays(count, how)}", _causes(how)]
    if how.get("queue_place") == "tail":
        parts.append("then at the end of its queue")
    return "; ".join(part for part in parts if part)


def limits_in_words(limits: Mapping[str, Any] | None) -> str | None:
    found = [
        words.format(limits[name])
        for name, words in _LIMITS.items()
        if limits and limits.get(name) is not None
    ]
    return ", ".join(found) or None


def loss_in_words(on_worker_lost: str | None) -> str | None:
    return _LOST.get(on_worker_lost or "", on_worker_lost)


def _delays(count: int, how: Mapping[str, Any]) -> str:
    delay = how.get("delay") or 0
    if not delay:
        return "at once"
    most = how.get("max_delay")
    if how.get("backoff", "constant") == "constant":
        words = f"{_seconds(delay, most)} apart"
    else:
        words = f"after {_steps(count, delay, most, how['backoff'])}"
    if jitter := how.get("jitter"):
        words += f", each up to {jitter * 100:g} % shorter"
    return words


def _steps(count: int, delay: float, most: float | None, backoff: str) -> str:
    numbers = range(1, min(count, _SHOWN_STEPS) + 1)
    growing = [delay * (n if backoff == "linear" else 2 ** (n - 1)) for n in numbers]
    words = ", ".join(_seconds(each, most) for each in growing)
    if count <= _SHOWN_STEPS:
        return words
    return f"{words} …" + (f" up to {duration(most)}" if most is not None else "")


def _seconds(delay: float, most: float | None) -> str:
    return duration(delay if most is None else min(delay, most))


def _causes(how: Mapping[str, Any]) -> str:
    """Nothing where every cause will do."""
    causes = list(how.get("on") or _CAUSES)
    chosen = _chosen(how)
    if len(causes) == len(_CAUSES) and not chosen:
        return ""
    words = [_CAUSES.get(each, each) + (chosen if each == "failed" else "") for each in causes]
    return f"only after {' or '.join(words)}"


def _chosen(how: Mapping[str, Any]) -> str:
    codes: Sequence[int] = how.get("exit_codes") or ()
    patterns: Sequence[str] = how.get("matching") or ()
    parts = []
    if codes:
        parts.append(f"exit code {', '.join(map(str, codes))}")
    if patterns:
        parts.append(f"an error like {', '.join(map(repr, patterns))}")
    return f" with {' or '.join(parts)}" if parts else ""
