"""Acknowledgements in bulk never cover what is still in hand."""

from hypothesis import given
from hypothesis import strategies as st

from attune.bus.amqp.acks import AckWindow, Answer, AnswerFrame


def test_everything_finished_is_one_frame() -> None:
    window = AckWindow()
    for tag in (1, 2, 3):
        window.deliver(tag)
    for tag in (2, 3, 1):
        window.settle(tag)
    assert window.take() == [AnswerFrame(Answer.ACK, 3, multiple=True)]
    assert not window.pending


def test_a_slow_handler_does_not_hold_up_the_answers_of_others() -> None:
    window = AckWindow()
    for tag in (1, 2, 3, 4):
        window.deliver(tag)
    for tag in (1, 3, 4):
        window.settle(tag)
    assert window.take() == [
        AnswerFrame(Answer.ACK, 1),
        AnswerFrame(Answer.ACK, 3),
        AnswerFrame(Answer.ACK, 4),
    ]


def test_what_goes_back_is_said_before_a_frame_that_would_cover_it() -> None:
    window = AckWindow()
    for tag in (1, 2, 3):
        window.deliver(tag)
    window.settle(1)
    window.give_back(2)
    window.settle(3)
    assert window.take() == [
        AnswerFrame(Answer.REQUEUE, 2),
        AnswerFrame(Answer.ACK, 3, multiple=True),
    ]


class Broker:
    """What the broker makes of the frames."""

    def __init__(self) -> None:
        self.unanswered: set[int] = set()
        self.acked: set[int] = set()
        self.requeued: set[int] = set()

    def hear(self, frame: AnswerFrame) -> None:
        tags = (
            {tag for tag in self.unanswered if tag <= frame.tag} if frame.multiple else {frame.tag}
        )
        assert tags <= self.unanswered, "answering twice closes the channel"
        self.unanswered -= tags
        (self.acked if frame.answer is Answer.ACK else self.requeued).update(tags)


@given(
    st.lists(st.sampled_from(["deliver", "settle", "return", "take"]), max_size=60), st.randoms()
)
def test_the_broker_hears_exactly_what_was_decided(steps: list[str], random: object) -> None:
    window, broker = AckWindow(), Broker()
    in_hand: list[int] = []
    settled: set[int] = set()
    returned: set[int] = set()
    for tag, step in enumerate(steps, start=1):
        if step == "deliver":
            window.deliver(tag)
            broker.unanswered.add(tag)
            in_hand.append(tag)
        elif step == "take":
            for frame in window.take():
                broker.hear(frame)
        elif in_hand:
            chosen = in_hand.pop(random.randrange(len(in_hand)))  # type: ignore[attr-defined]
            (window.settle if step == "settle" else window.give_back)(chosen)
            (settled if step == "settle" else returned).add(chosen)
    for frame in window.take():
        broker.hear(frame)
    assert (broker.acked, broker.requeued) == (settled, returned)
    assert broker.unanswered == set(in_hand)
