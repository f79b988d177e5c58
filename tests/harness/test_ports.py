"""A port stays its process's while the server on it is down."""

import subprocess
import sys

import pytest

from harness import ports

OTHER = "from harness import ports; ports.CANDIDATES = range({0}, {1}); print(ports.free_port())"


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    start = ports.free_port()
    monkeypatch.setattr(ports, "CANDIDATES", range(start, start + 1))
    with pytest.raises(OSError, match="found no free port"):
        ports.free_port()


def test_no_other_process_is_given_a_port_whose_server_is_down() -> None:
    port = ports.free_port()
    asked = subprocess.run(
        [sys.executable, "-c", OTHER.format(port, port + 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "found no free port" in asked.stderr
