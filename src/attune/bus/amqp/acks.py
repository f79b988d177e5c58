"""Which acknowledgements to send: as few as possible, and none for what is still in hand."""

from enum import StrEnum

import msgspec


class Answer(StrEnum):
    ACK = "ack"
    REQUEUE = "requeue"


class AnswerFrame(msgspec.Struct, frozen=True):
    """With `multiple`, the broker takes it for every unanswered delivery up to this tag."""

    answer: Answer
    tag: int
    multiple: bool = False


class AckWindow:
    """The deliveries of one channel. Tags grow, but handlers finish in any order."""

    def __init__(self) -> None:
        self._in_hand: dict[int, None] = {}
        self._settled: list[int] = []
        self._returned: list[int] = []

    @property
    def pending(self) -> bool:
        return bool(self._settled or self._returned)

    def deliver(self, tag: int) -> None:
        self._in_hand[tag] = None

    def settle(self, tag: int) -> None:
        self._in_hand.pop(tag, None)
        self._settled.append(tag)

    def give_back(self, tag: int) -> None:
        self._in_hand.pop(tag, None)
        self._returned.append(tag)

    def take(self) -> list[AnswerFrame]:
        """One frame for everything below the oldest delivery in hand, one each for the others.

        What goes back is said first: a later `multiple` must find it answered.
        """
        settled, self._settled = self._settled, []
        returned, self._returned = self._returned, []
        oldest = next(iter(self._in_hand), None)
        below = settled if oldest is None else [tag for tag in settled if tag < oldest]
        above = [] if oldest is None else [tag for tag in settled if tag > oldest]
        frames = [AnswerFrame(Answer.REQUEUE, tag) for tag in returned]
        if below:
            frames.append(AnswerFrame(Answer.ACK, max(below), multiple=len(below) > 1))
        return frames + [AnswerFrame(Answer.ACK, tag) for tag in above]
