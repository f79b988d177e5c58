"""Packs are sent as one archive: a folder packed, an archive as it is."""

import email
import email.policy
import io
import tarfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from attune.client.archives import archive_of
from attune.kernel.errors import InvalidInput
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import FakeServer, data, pack

UPLOAD = "/api/v1/packs/upload"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    (folder / "actions").mkdir(parents=True)
    (folder / "pack.yaml").write_text("ref: demo\n")
    (folder / "actions" / "run.sh").write_text("echo hi\n")
    (folder / "actions" / "run.sh").chmod(0o755)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("secret\n")
    return folder


def form_of(server: FakeServer) -> dict[str, EmailMessage]:
    """The parts of the multipart form that was sent, by their name."""
    [request] = server.asked("POST", UPLOAD)
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    whole = email.message_from_bytes(head + request.content, policy=email.policy.default)
    found = {}
    for part in whole.iter_parts():
        assert isinstance(part, EmailMessage)
        found[str(part.get_param("name", header="content-disposition"))] = part
    return found


async def test_a_folder_is_packed_with_its_modes_and_without_its_history(
    caller: Caller, server: FakeServer, folder: Path
) -> None:
    server.on("POST", UPLOAD, data({"pack": pack(), "tests_skipped": True}, 201))
    made = await caller.call(caller.client.packs.upload, folder, force=True)
    assert made.pack.ref == "demo"
    form = form_of(server)
    assert form["force"].get_payload() == "true"
    assert form["skip_tests"].get_payload() == "false"
    assert form["pack"].get_filename() == "demo.tar.gz"
    content = form["pack"].get_payload(decode=True)
    assert isinstance(content, bytes)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        modes = {member.name: member.mode for member in archive}
    assert modes == {"pack.yaml": 0o644, "actions/run.sh": 0o755}


async def test_an_archive_is_sent_as_it_is(
    caller: Caller, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "demo.tgz").write_bytes(b"whatever")
    server.on("POST", UPLOAD, data({"pack": pack()}, 201))
    await caller.call(caller.client.packs.upload, str(tmp_path / "demo.tgz"))
    assert form_of(server)["pack"].get_payload(decode=True) == b"whatever"


def test_the_same_folder_gives_the_same_bytes(folder: Path) -> None:
    first = archive_of(folder)
    (folder / "pack.yaml").touch()
    assert archive_of(folder) == first


def test_a_folder_without_a_pack_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"is no pack: it has no pack\.yaml"):
        archive_of(tmp_path)


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere cannot be read: No such file"):
        archive_of(tmp_path / "nowhere")


def test_a_link_does_not_carry_foreign_files_away(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("secret\n")
    (folder / "actions" / "link").symlink_to(tmp_path / "private")
    with pytest.raises(InvalidInput, match=r"actions/link: links and devices are refused"):
        archive_of(folder)
