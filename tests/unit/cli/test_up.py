"""`attune up` brings the demo pack unless it is told not to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attune.cli import processes
from attune.cli.main import app_for
from attune.kernel.settings import Settings


@pytest.mark.parametrize(
    ("options", "expected"), [([], True), (["--demo"], True), (["--no-demo"], False)]
)
def test_up_passes_on_whether_the_demo_is_wanted(
    options: list[str], expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def everything(settings: Settings, ready: Callable[[str], None], *, demo: bool) -> None:
        asked.append((settings.data_dir, demo))

    monkeypatch.setattr(processes, "everything", everything)
    monkeypatch.setattr(processes, "_run", lambda make: make())
    monkeypatch.setattr(
        processes, "settings_and_logs", lambda _config, **_: Settings(data_dir=tmp_path)
    )
    arguments = ["up", *options]
    result = CliRunner().invoke(app_for(arguments), arguments)
    assert (result.exit_code, asked) == (0, [(tmp_path, expected)]), result.output
