"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from attune.kernel.configuration import load_settings
from attune.kernel.settings import Settings
from attune.telemetry.logs import configure_logs

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="ATTUNE_CONFIG",
        help="YAML file with settings; variables ATTUNE__SECTION__KEY override it.",
    ),
]


def settings_and_logs(config: Path | None, **overrides: object) -> Settings:
    """The settings of this call, with logging set up by them before anything else happens."""
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    settings = load_settings(os.environ, config, dotted)
    configure_logs(settings.log)
    return settings
