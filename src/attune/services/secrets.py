"""The secrets of an installation: given by its configuration, or made once for an embedded one."""

import os
from pathlib import Path
from typing import Final

import pydantic
import yaml

from attune.kernel.errors import InvalidSettings
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings

_NAMES: Final = ("jwt_secret", "encryption_key")


def with_secrets(settings: Settings, ids: Ids) -> Settings:
    """The settings with both secrets in them. On PostgreSQL they must be given, so that all processes agree."""
    missing = [name for name in _NAMES if getattr(settings.security, name) is None]
    if not missing:
        return settings
    if not settings.embedded:
        names = " and ".join(f"security.{name}" for name in missing)
        raise InvalidSettings(
            f"{names} must be set when the database is PostgreSQL: every process needs the same.",
            field=f"security.{missing[0]}",
        )
    kept = _kept_secrets(settings.data_dir / "secrets.yaml", ids)
    found = {name: pydantic.SecretStr(kept[name]) for name in missing}
    security = settings.security.model_copy(update=found)
    return settings.model_copy(update={"security": security})


def _kept_secrets(file: Path, ids: Ids) -> dict[str, str]:
    """Read, or written once, readable by its owner alone from the first byte on."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = file.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            yaml.safe_dump({name: ids.token() for name in _NAMES}, stream)
        new.rename(file)
    kept = yaml.safe_load(file.read_text())
    if not isinstance(kept, dict) or any(not isinstance(kept.get(name), str) for name in _NAMES):
        raise InvalidSettings(f"{file} does not hold {' and '.join(_NAMES)}.", file=str(file))
    return kept
