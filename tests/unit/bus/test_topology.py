"""The standard topology, and the routes into it."""

import pytest

from attune.bus.outcome import RetryPolicy
from attune.bus.routing import EVENTS, NOTICES, Kind, Router, kind_of, route_of
from attune.bus.topics import matches
from attune.bus.topology import (
    Queue,
    StageQueue,
    Topology,
    broadcast_queue,
    standard_topology,
    worker_queue,
)
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import hand_off

TOPOLOGY = standard_topology()


def exchanges_of(topology: Topology) -> set[str]:
    return {exchange.name for exchange in topology.exchanges}


def test_every_exchange_that_is_named_exists() -> None:
    names = exchanges_of(TOPOLOGY)
    queues = [*TOPOLOGY.queues, worker_queue(WorkerId(1)), broadcast_queue("p", *MessageType)]
    for queue in queues:
        assert {binding.exchange for binding in queue.bindings} <= names, queue.name
        assert queue.dead_letters_to is None or queue.dead_letters_to in names
    assert {e.unrouted_to for e in TOPOLOGY.exchanges if e.unrouted_to} <= names


def test_every_mortal_queue_has_a_dead_letter_queue_that_its_letters_match() -> None:
    by_name = {queue.name: queue for queue in TOPOLOGY.queues}
    for queue in [*TOPOLOGY.queues, worker_queue(WorkerId(1)), broadcast_queue("host:1")]:
        if queue.dead_letter_queue is None:
            continue
        route = queue.burial
        bindings = by_name[queue.dead_letter_queue].bindings
        taken = [b for b in bindings if b.exchange == route.exchange]
        assert any(matches(b.routing_key, route.routing_key) for b in taken), queue.name


def test_there_is_a_rung_for_every_delay_and_it_leads_back_by_the_name_of_the_queue() -> None:
    topology = standard_topology(retry=RetryPolicy(first=0.5, factor=3, ceiling=4, max_retries=5))
    rungs = [queue for queue in topology.queues if queue.name.startswith("attune.retry.")]
    assert [queue.name for queue in rungs] == [
        "attune.retry.500",
        "attune.retry.1500",
        "attune.retry.4000",
    ]
    assert all(queue.dead_letters_to == "attune.queues" for queue in rungs)
    assert all(queue.dead_letter_key is None for queue in rungs)


def test_every_queue_is_found_under_its_own_name() -> None:
    for queue in [*TOPOLOGY.queues, worker_queue(WorkerId(1)), broadcast_queue("p")]:
        if not queue.name.startswith("attune.retry."):
            assert ("attune.queues", queue.name) in {
                (binding.exchange, binding.routing_key) for binding in queue.bindings
            }


def test_names_are_unique() -> None:
    names = [queue.name for queue in TOPOLOGY.queues]
    assert len(names) == len(set(names))


def test_the_exchange_of_executions_is_a_setting_and_names_its_dead_letter_exchange() -> None:
    topology = standard_topology(executions="acme.work")
    assert {"acme.work", "acme.work.dlx"} <= exchanges_of(topology)
    assert "attune.executions" not in exchanges_of(topology)


def test_a_worker_queue_lives_as_the_specification_says() -> None:
    queue = worker_queue(WorkerId(12))
    assert queue.name == "attune.execution.worker.12"
    assert queue.ttl_seconds == 300
    assert queue.dead_letters_to == "attune.executions.dlx"
    assert queue.dead_letter_key is None
    assert not queue.exclusive


@pytest.mark.parametrize("message_type", MessageType)
def test_the_routing_key_is_the_type_itself(message_type: MessageType) -> None:
    route = route_of(message_type)
    if kind_of(message_type) is Kind.ORDER:
        assert route is None
    else:
        assert route is not None
        assert route.routing_key == message_type.value


def test_events_work_and_notices_have_an_exchange_each() -> None:
    def exchange(message_type: MessageType) -> str | None:
        route = route_of(message_type, "acme.work")
        return route.exchange if route else None

    assert exchange(MessageType.EVENT_CREATED) == EVENTS
    assert exchange(MessageType.ENFORCEMENT_CREATED) == "acme.work"
    assert exchange(MessageType.RULE_DELETED) == NOTICES
    assert exchange(MessageType.PACK_UPDATED) == NOTICES


def test_all_work_has_a_stage() -> None:
    work = {kind for kind in MessageType if kind_of(kind) in (Kind.WORK, Kind.EVENT)}
    stages = [queue for queue in TOPOLOGY.queues if queue.name in set(StageQueue)]
    taken = {binding.routing_key for queue in stages for binding in queue.bindings}
    assert {kind.value for kind in work} <= taken


def test_a_queue_without_dead_letters_buries_into_the_unrouted() -> None:
    assert Queue(name="q").burial.exchange == "attune.unrouted"


def test_router_refuses_an_order_without_its_queue() -> None:
    router = Router("attune.executions")
    with pytest.raises(InvalidInput):
        router.route(hand_off(WorkerId(1)), None)
    assert router.route(hand_off(WorkerId(1)), "q").exchange == "attune.queues"


@pytest.mark.parametrize(
    ("pattern", "key", "matched"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.#", "a", True),
        ("a.#", "a.b.c", True),
        ("#", "", True),
        ("#", "a.b", True),
        ("#.c", "a.b.c", True),
        ("*.b.#", "a.b", True),
        ("a", "a.b", False),
    ],
)
def test_topic_patterns_match_as_amqp_says(pattern: str, key: str, matched: bool) -> None:
    assert matches(pattern, key) is matched
