"""Secrets are made once for an embedded installation, and asked for by name otherwise."""

import stat
from pathlib import Path

import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.errors import InvalidSettings
from attune.kernel.ids import Ids
from attune.services.secrets import with_secrets


def secret_of(folder: Path, **variables: str) -> tuple[str, str]:
    environ = {"ATTUNE__DATA_DIR": str(folder), **variables}
    security = with_secrets(load_settings(environ), Ids()).security
    assert security.jwt_secret is not None
    assert security.encryption_key is not None
    return security.jwt_secret.get_secret_value(), security.encryption_key.get_secret_value()


def test_they_are_made_at_the_first_start_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    first = secret_of(folder)
    assert secret_of(folder) == first
    assert all(len(secret) >= 64 for secret in first)
    assert first[0] != first[1]
    assert stat.S_IMODE((folder / "secrets.yaml").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_the_configuration_gives_is_used(tmp_path: Path) -> None:
    jwt, key = secret_of(tmp_path, ATTUNE__SECURITY__JWT_SECRET="given")
    assert jwt == "given"
    assert key != "given"


def test_on_postgresql_they_must_be_given() -> None:
    environ = {
        "ATTUNE__DATABASE__URL": "postgresql://db/attune",
        "ATTUNE__SECURITY__JWT_SECRET": "given",
    }
    with pytest.raises(InvalidSettings, match=r"security\.encryption_key must be set"):
        with_secrets(load_settings(environ), Ids())


def test_a_broken_file_is_told_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "secrets.yaml").write_text("jwt_secret: [1]\n")
    with pytest.raises(InvalidSettings, match=r"secrets\.yaml does not hold"):
        secret_of(tmp_path)
