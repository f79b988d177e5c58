"""Fixtures that several of these files share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from harness.postgresql import PostgreSQL
from tests.e2e.fleet import Fleet
from tests.e2e.installation import production

MakeFleet = Callable[..., Fleet]


@pytest.fixture
def fleet_with(
    postgresql: PostgreSQL, migrated_url: str, rabbitmq_url: str, tmp_path: Path
) -> Iterator[MakeFleet]:
    """Makes a fleet with these settings; all its processes end with the test."""
    rows = partial(postgresql.execute, url=migrated_url)
    variables = production(tmp_path, migrated_url, rabbitmq_url).variables
    with ExitStack() as stack:

        def make(**settings: str) -> Fleet:
            own = {f"ATTUNE__{name.upper()}": value for name, value in settings.items()}
            chosen = {**variables, **own, "ATTUNE__DATA_DIR": str(tmp_path / "data")}
            return stack.enter_context(Fleet(tmp_path, rows, **chosen))

        yield make
