import asyncio
import signal
from collections.abc import Callable, Mapping

import pytest
import uvloop
from hypothesis import HealthCheck, settings

# What stands beside the tests asserts as well, and is to say what it found.
pytest.register_assert_rewrite("tests.contract", "tests.e2e", "tests.unit", "harness")

pytest_plugins = ["harness.fixtures"]

# How long it takes to draw an example says more of the machine than of the test.
settings.register_profile("attune", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("attune")

# Whoever starts the tests in the background of a shell has them ignore Ctrl-C, and with them every process under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of our processes: it tells of sockets and pipes in another order than the usual one."""
    return {"uvloop": uvloop.new_event_loop}
