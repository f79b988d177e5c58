"""Links of executors and of the API break and heal under a steady flow: nothing is lost, run twice unseen, or held."""

from collections.abc import Iterator

import pytest

from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from tests.e2e.partitions import LONG, MOMENT, Fault, Scene, Server, scene_of, wait_for_more
from tests.e2e.steady_flow import Stream

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def scene(
    postgresql: PostgreSQL, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    with scene_of(postgresql, rabbitmq, tmp_path_factory.mktemp("partitions")) as found:
        yield found


@pytest.mark.parametrize("seconds", [MOMENT, LONG], ids=["a moment", "longer than a lease"])
@pytest.mark.parametrize("fault", ["cut", "black hole"])
@pytest.mark.parametrize("server", ["broker", "database"])
@pytest.mark.parametrize("name", ["executor-1", "api"])
def test_a_broken_link_heals_and_everything_accepted_ends(
    name: str, server: Server, fault: Fault, seconds: float, scene: Scene
) -> None:
    scene.break_and_heal(name, server, fault, seconds)


@pytest.mark.parametrize(
    ("name", "server"), [("executor-1", "broker"), ("executor-1", "database"), ("api", "broker")]
)
def test_work_goes_on_while_one_of_them_is_in_a_black_hole(
    name: str, server: Server, scene: Scene
) -> None:
    with Stream(scene.client) as stream:
        wait_for_more(stream)
        with scene.installation.broken(name, server, "black hole"):
            wait_for_more(stream)
            scene.check_ended(list(stream.accepted), at_rest=False)
    scene.check_ended(stream.accepted)


def test_the_decision_log_proves_order_and_limits(scene: Scene) -> None:
    scene.check_log()
