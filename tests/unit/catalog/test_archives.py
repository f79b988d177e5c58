"""An upload is unpacked within its bounds or leaves nothing behind; whatever its bytes are, it is only refused."""

import gzip
import io
import random
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attune.catalog import archives
from attune.catalog.archives import unpack
from attune.catalog.sources import folder
from attune.catalog.sources.folder import read_pack
from attune.kernel.errors import InvalidInput
from tests.unit.catalog.packs import HEAD, SHOP, archive


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    found.seek(0)
    return found


def member(name: str, **fields: object) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(found, field, value)
    return found


GOOD = (member("pack.yaml"), HEAD.encode())


def refused(upload: io.BytesIO, into: Path) -> str:
    with pytest.raises(InvalidInput) as refusal:
        unpack(upload, into)
    return refusal.value.message


@pytest.mark.parametrize("top", ["", "./", "shop-1.0/"])
def test_a_pack_at_the_root_or_in_one_top_folder(tmp_path: Path, top: str) -> None:
    pack = read_pack(unpack(archive(SHOP, top), tmp_path))
    assert pack.ref == "shop"
    assert len(pack.actions) == 1


def test_a_mode_keeps_nothing_but_whether_it_may_be_executed(tmp_path: Path) -> None:
    run, data = member("run", mode=0o6777), member("data", mode=0o2444)
    unpack(tar_of(GOOD, (run, b"x"), (data, b"y")), tmp_path)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    upload = tar_of(GOOD, (member("actions/x", type=kind, linkname="/etc/passwd"), b""))
    assert refused(upload, tmp_path) == "actions/x: links and devices are refused"


def test_a_file_cannot_be_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = tmp_path / "inside"
    inside.mkdir()
    link = member("a", type=tarfile.SYMTYPE, linkname=str(outside))
    refused(tar_of(GOOD, (link, b""), (member("a/evil"), b"x")), inside)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("../evil", "../evil: a path must stay inside the pack"),
        ("actions/../../evil", "actions/../../evil: a path must stay inside the pack"),
        ("/etc/evil", "etc/evil: a path must stay inside the pack"),
        ("a\\b", "a\\b: the file's name has characters that are refused"),
        ("a" * 300, "a" * 80 + "...: the file's name is too long"),
        ("d/" * 31 + "x", "d/" * 31 + "x: folders are nested more than 30 deep"),
        ("pack.yaml", "pack.yaml: the archive has this file twice"),
        ("pack.yaml/x", "pack.yaml/x: the archive has a file and a folder of the same name"),
    ],
)
def test_bad_names_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "in").mkdir()
    assert refused(tar_of(GOOD, (member(name), b"x")), tmp_path / "in") == text
    assert {path.name for path in tmp_path.iterdir()} == {"in"}


def test_what_editors_and_version_control_leave_is_left_out(tmp_path: Path) -> None:
    link = member(".git/x", type=tarfile.SYMTYPE, linkname="y")
    unpack(tar_of(GOOD, (link, b""), (member("lib/__pycache__/a.pyc"), b"x")), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["pack.yaml"]


def test_no_pack_file_is_told(tmp_path: Path) -> None:
    text = "pack.yaml: the archive has no such file at its root or in one top folder"
    assert refused(tar_of((member("a/b/pack.yaml"), b""), (member("c"), b"")), tmp_path) == text


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    upload = io.BytesIO()
    with gzip.GzipFile(fileobj=upload, mode="wb", compresslevel=9) as stream:
        claimed = member("zeros", size=10**12)
        stream.write(claimed.tobuf())
        for _ in range(60):
            stream.write(bytes(1_000_000))
    assert refused(upload, tmp_path) == "zeros: the file is larger than 50000000 bytes"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) == 0


def test_many_large_files_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MAX_TOTAL_BYTES", 5000)
    upload = tar_of(*[(member(f"f{i}"), bytes(2000)) for i in range(4)])
    assert refused(upload, tmp_path) == "the pack has more than 5000 bytes"


def test_a_stream_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MAX_STREAM_BYTES", 20_000_000)
    upload = archive(SHOP)
    content = gzip.decompress(upload.getvalue()) + bytes(30_000_000)
    assert "more than 500000000 bytes" in refused(io.BytesIO(gzip.compress(content, 1)), tmp_path)


def test_a_header_cannot_ask_for_memory(tmp_path: Path) -> None:
    header = member("pax", type=tarfile.XHDTYPE, size=400_000_000).tobuf()
    upload = io.BytesIO(gzip.compress(header + bytes(10_000)))
    assert refused(upload, tmp_path) == "the archive has a header that is too large"


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 20)
    upload = tar_of(*[(member(f"f{i}"), b"") for i in range(21)])
    assert refused(upload, tmp_path) == "the pack has more than 20 files"


def test_too_many_entries_of_any_kind_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MAX_ENTRIES", 20)
    upload = tar_of(*[(member(f"d{i}", type=tarfile.DIRTYPE), b"") for i in range(21)])
    assert refused(upload, tmp_path) == "the archive has more than 20 entries"


def test_too_large_an_upload_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_UPLOAD_BYTES", 10)
    assert refused(io.BytesIO(b"x" * 11), tmp_path) == "the upload is larger than 10 bytes"


def test_a_chain_of_long_names_cannot_exhaust_the_stack(tmp_path: Path) -> None:
    link = member("x", type=tarfile.GNUTYPE_LONGNAME, size=1).tobuf() + b"a".ljust(512, b"\0")
    upload = io.BytesIO(gzip.compress(link * 5000))
    assert "not a usable .tar.gz archive" in refused(upload, tmp_path)


def broken_in_the_middle(content: bytes) -> bytes:
    return content[:1024] + b"garbage!" * 64 + content[1024:]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize("harm", [broken_in_the_middle])
def test_a_broken_header_is_not_taken_for_the_end(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    content = gzip.decompress(archive(SHOP).getvalue())
    text = refused(io.BytesIO(gzip.compress(harm(content))), tmp_path)
    assert text == "not a usable .tar.gz archive (broken in the middle)"


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x1f\x8b", cut(archive(SHOP).getvalue())]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    assert refused(io.BytesIO(content), tmp_path)


def damaged(seed: int) -> io.BytesIO:
    source = random.Random(seed)
    content = bytearray(gzip.decompress(archive(SHOP).getvalue()))
    for _ in range(source.randint(1, 30)):
        content[source.randrange(3000)] = source.randrange(256)
    return io.BytesIO(gzip.compress(bytes(content), 1))


uploads = (
    st.integers(0, 10**9).map(damaged)
    | st.binary(max_size=2000).map(io.BytesIO)
    | st.binary(max_size=2000).map(lambda content: io.BytesIO(gzip.compress(content)))
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None
)
@given(uploads)
def test_garbage_is_unpacked_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, upload: io.BytesIO
) -> None:
    into = tmp_path_factory.mktemp("garbage")
    try:
        read_pack(unpack(upload, into))
    except InvalidInput as refusal:
        assert refusal.message
