"""`attune.Client` is there for whoever asks, and costs nothing for whoever does not."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import attune
import attune.client

SERVER = {
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "alembic",
    "psycopg",
    "sqlite3",
    "aiormq",
    "redis",
    "structlog",
    "argon2",
    "attune.services.base",
    "attune.store",
    "attune.pipeline",
    "attune.kernel.settings",
}


def test_the_package_exports_both_clients_and_its_version() -> None:
    assert attune.Client is attune.client.Client
    assert attune.AsyncClient is attune.client.AsyncClient
    assert attune.__version__ == version("attune-engine")
    with pytest.raises(AttributeError, match="nothing_such"):
        attune.nothing_such  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("attune", {"httpx2", "msgspec", "importlib.metadata", "typing"}),
        ("attune.client", {"pydantic", "fastapi", "sqlalchemy", "yaml", "asyncio", "rich"}),
        ("attune.cli.run", {"pydantic", "yaml", "asyncio", *SERVER}),
        ("attune.cli.main", {"httpx2", "rich", "importlib.metadata", "pydantic", *SERVER}),
    ],
)
def test_importing_it_loads_nothing_heavy(module: str, heavy: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert module in shown.stdout.split()
    assert heavy.isdisjoint(shown.stdout.split())


def test_a_short_command_loads_nothing_heavy_to_its_end() -> None:
    """Also not the library that reads the command line, for options as simple as these."""
    code = (
        "import sys; from attune.cli.main import main\n"
        "sys.argv[1:] = ['run', 'core.echo', '-p', 'x:=[', '-o', 'json', '--url', '127.0.0.1:1',"
        " '--data-dir', 'nowhere']\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    print(end.code, *sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "x is not JSON" in shown.stderr
    words = shown.stdout.split()
    assert words[0] == "2"
    assert SERVER.isdisjoint(words)
    assert {"pydantic", "yaml", "asyncio"}.isdisjoint(words)
