"""How an answer is read."""

import enum
from typing import Any

import pytest

from attune.client.calls import Call, get


class _Interrupting(enum.EnumMeta):
    """A kind of answer during whose search somebody presses Ctrl-C."""

    armed = False

    def __hash__(cls) -> int:
        if _Interrupting.armed:
            raise KeyboardInterrupt
        return 1


class _Word(enum.Enum, metaclass=_Interrupting):
    YES = "yes"


def test_an_interruption_while_an_answer_is_read_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call: Call[Any] = get("/somewhere", _Word)
    monkeypatch.setattr(_Interrupting, "armed", True)
    with pytest.raises(KeyboardInterrupt):
        call.decode(b'{"data": "yes"}')
