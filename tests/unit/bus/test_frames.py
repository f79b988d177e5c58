"""Our frames are those that the driver would write."""

import pytest
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import unmarshal
from pamqp.header import ContentHeader

from attune.bus.amqp.frames import copied, from_envelope
from attune.bus.routing import Route
from attune.kernel.envelope import encode
from attune.kernel.errors import InvalidInput
from tests.contract.bus.messages import enforcement

ROUTE = Route("attune.executions", "enforcement.created")


def frames_of(data: bytes) -> list[tuple[int, object]]:
    frames: list[tuple[int, object]] = []
    while data:
        size, channel, frame = unmarshal(data)
        frames.append((channel, frame))
        data = data[size:]
    return frames


def test_a_message_is_its_method_its_header_and_its_body_in_frames_of_the_agreed_size() -> None:
    envelope = enforcement(1)
    frames = frames_of(from_envelope(envelope, ROUTE).frames(channel=3, frame_max=100))
    assert {channel for channel, _ in frames} == {3}
    method, header, *bodies = [frame for _, frame in frames]
    assert isinstance(method, Basic.Publish)
    assert (method.exchange, method.routing_key) == (ROUTE.exchange, ROUTE.routing_key)
    assert isinstance(header, ContentHeader)
    assert header.properties.message_id == str(envelope.message_id)
    assert header.body_size == len(encode(envelope))
    chunks = [body.value or b"" for body in bodies if isinstance(body, ContentBody)]
    assert b"".join(chunks) == encode(envelope)
    assert [len(chunk) for chunk in chunks[:-1]] == [92] * (len(chunks) - 1)


def test_an_empty_body_has_no_frame() -> None:
    data = copied(Basic.Properties(), b"", ROUTE, {}).frames(channel=1, frame_max=4096)
    assert len(frames_of(data)) == 2


def test_a_copy_keeps_what_names_the_message_and_drops_the_brokers_headers() -> None:
    original = Basic.Properties(
        message_id="m", message_type="t", headers={"x-death": []}, delivery_mode=1
    )
    data = copied(original, b"x", ROUTE, {"x-attune-reason": "failed"}).frames(1, 4096)
    header = frames_of(data)[1][1]
    assert isinstance(header, ContentHeader)
    assert header.properties.headers == {"x-attune-reason": "failed"}
    assert (header.properties.message_id, header.properties.delivery_mode) == ("m", 2)


@pytest.mark.parametrize("name", ["x" * 256, "half \udcff"])
def test_a_route_that_cannot_be_written_is_refused_when_the_message_is_made(name: str) -> None:
    with pytest.raises(InvalidInput):
        from_envelope(enforcement(1), Route("attune.queues", name))
