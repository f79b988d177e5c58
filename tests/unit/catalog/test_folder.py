"""A folder is read as plain files within bounds, and its digest is that of its content alone."""

import os
from pathlib import Path

import pytest

from attune.catalog.files import digest_of
from attune.catalog.sources import folder
from attune.catalog.sources.folder import files_in, read_pack
from attune.kernel.errors import InvalidInput
from tests.unit.catalog.packs import SHOP, write


def refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as refusal:
        read_pack(path)
    return refusal.value.message


def test_a_folder_is_a_pack(tmp_path: Path) -> None:
    pack = read_pack(write(tmp_path, {**SHOP, ".git/HEAD": "x", "actions/__pycache__/s.pyc": ""}))
    assert pack.ref == "shop"
    assert "actions/ship.py" in [file.path for file in files_in(tmp_path)]
    assert not any(".git" in file.path for file in files_in(tmp_path))


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    link = tmp_path / "actions" / "x.yaml"
    link.symlink_to("/etc/passwd")
    assert refused(tmp_path) == "actions/x.yaml: links and devices are refused"
    link.unlink()
    os.mkfifo(link)
    assert refused(tmp_path) == "actions/x.yaml: links and devices are refused"


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "pack", SHOP)
    (tmp_path / "pack" / "lib").symlink_to(tmp_path)
    assert refused(tmp_path / "pack") == "lib: links and devices are refused"


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, SHOP)
    monkeypatch.setattr(folder, "MAX_FILE_BYTES", 30)
    assert "the file is larger than 30 bytes" in refused(tmp_path)
    monkeypatch.setattr(folder, "MAX_FILES", 3)
    monkeypatch.setattr(folder, "MAX_FILE_BYTES", 10**6)
    assert refused(tmp_path) == "the pack has more than 3 files"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    assert refused(tmp_path) == "?.txt: the file's name has characters that are refused"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").endswith("nowhere: No such file or directory")


def test_a_definition_that_is_too_large_is_told(tmp_path: Path) -> None:
    write(tmp_path, {**SHOP, "rules/on_order.yaml": "#" * 1_000_001})
    assert refused(tmp_path) == "rules/on_order.yaml: the file is larger than 1000000 bytes"


def test_the_digest_is_of_names_contents_and_executables(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "one", SHOP),
        write(tmp_path / "two", dict(reversed(list(SHOP.items())))),
    )
    os.utime(two / "pack.yaml", (0, 0))
    (two / "actions" / "ship.py").chmod(0o640)
    assert digest_of(one) == digest_of(two)
    (two / "actions" / "ship.py").chmod(0o750)
    assert digest_of(one) != digest_of(two)
    (two / "actions" / "ship.py").chmod(0o640)
    (two / "actions" / "ship.py").write_text("print('lost')\n")
    assert digest_of(one) != digest_of(two)
