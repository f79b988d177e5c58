"""A role loads what it is made of and nothing else: that is most of the time that it takes to start, and of its memory."""

import subprocess
import sys

import pytest

from attune.services import roles
from attune.services.roles import Role

HTTP = {"fastapi", "starlette", "uvicorn", "attune.api"}
MIGRATIONS = {"alembic", "mako", "attune.store.migrate"}
WORKER = {"attune.worker.runner", "attune.worker.service", "attune.worker.warm"}
EXECUTOR = {"attune.pipeline.processors", "attune.services.executor_parts"}
FIRST_RUN = {"attune.services.demo", "attune.services.local_access"}

USELESS = {
    Role.API: {*MIGRATIONS, *WORKER, *EXECUTOR, *FIRST_RUN, "redis"},
    Role.EXECUTOR: {*MIGRATIONS, *HTTP, *WORKER, *FIRST_RUN, "attune.catalog.packs", "redis"},
    Role.WORKER: {*MIGRATIONS, *EXECUTOR, *FIRST_RUN, "fastapi", "attune.api", "redis"},
    Role.SENSOR: {*MIGRATIONS, *HTTP, *WORKER, *EXECUTOR, *FIRST_RUN, "redis"},
}


def loaded_by(code: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return set(shown.stdout.split())


@pytest.mark.parametrize("role", Role)
def test_a_role_loads_nothing_that_it_has_no_use_for(role: Role) -> None:
    module = f"attune.services.{roles.MODULES[role]}"
    loaded = loaded_by(f"import attune.cli.processes, {module}")
    assert {"attune.services.roles", module} <= loaded
    assert not USELESS[role] & loaded


def test_everything_in_one_process_loads_no_migrations_until_a_schema_is_wanting() -> None:
    loaded = loaded_by("import attune.cli.processes, attune.services.all_parts")
    assert "attune.services.executor_parts" in loaded
    assert not MIGRATIONS & loaded
