"""Input that breaks a rule is refused with its place, and leaves nothing behind."""

import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

from attune.api.bodies import DEEPEST
from tests.contract.api.asgi import Client, form_of
from tests.contract.api.world import World
from tests.unit.catalog.packs import SHOP, archive

PUBLIC = {
    "/health", "/health/live", "/health/ready", "/health/detailed", "/auth/settings",
    "/auth/register", "/auth/login", "/auth/refresh", "/auth/ldap/login", "/docs", "/openapi.json",
    "/api/v1/webhooks/{webhook_key}", "/metrics",
}  # fmt: skip
LAB: dict[str, Any] = {"ref": "lab", "label": "Lab", "version": "1"}


def operations(world: World) -> set[tuple[str, str]]:
    """Every method and path that the application serves."""
    found = {
        (method, str(route.path))
        for route in iter_route_contexts(world.app.routes)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert len(found) > 60
    return found


async def test_without_a_valid_token_every_operation_is_401(world: World) -> None:
    strangers = [Client(world.app), Client(world.app, "nonsense"), Client(world.app, "é")]
    for method, path in operations(world):
        at = re.sub(r"\{\w+\}", "1", path)
        for stranger in strangers if path not in PUBLIC else []:
            answer = await stranger.send(method, at, {})
            assert answer.status == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_every_operation_but_the_description_itself_is_described(world: World) -> None:
    described = {
        (method.upper(), path)
        for path, methods in world.app.openapi()["paths"].items()
        for method in methods
    }
    assert operations(world) - described == {("GET", "/docs"), ("GET", "/openapi.json")}


async def test_an_unknown_path_is_404_with_a_token_and_without(world: World, admin: Client) -> None:
    for client in (world.nobody, admin):
        for path in ("/api/v1/nothing", "/api/v1/packs/core/nothing", "/nothing"):
            assert (await client.get(path)).status == 404


UNKEEPABLE: list[tuple[str, str]] = [
    (r'{"config": {"a": ["x", "\u0000"]}}', "config.a[1]"),
    (r'{"config": {"a\u0000": 1}}', "config.a\0"),
    (r'{"label": "\u0000"}', "label"),
    (r'{"label": "\ud800"}', "label"),
    (r'{"tags": ["\udc00"]}', "tags[0]"),
    ('{"config": {"x": NaN}}', "config.x"),
    ('{"config": {"x": -Infinity}}', "config.x"),
    ('{"config": {"x": 1e999}}', "config.x"),
    ('{"config": {"x": 9223372036854775808}}', "config.x"),
    ('{"config": {"x": -1' + "0" * 400 + "}}", "config.x"),
    ('{"config": ' + '{"a":' * 70 + "1" + "}" * 70 + "}", "config" + ".a" * DEEPEST),
]


async def test_what_a_database_cannot_hold_is_422_and_names_its_place(admin: Client) -> None:
    await admin.post("/api/v1/packs", LAB)
    before = (await admin.get("/api/v1/packs/lab")).data
    for body, place in UNKEEPABLE:
        answer = await admin.put("/api/v1/packs/lab", body.encode())
        assert (answer.status, list(answer.body["details"])) == (422, [place]), body[:60]
    assert (await admin.get("/api/v1/packs/lab")).data == before


UNREADABLE: list[bytes] = [
    b"{", b"nonsense", b'{"label": "x",}', b'{"label": "\xff"}', b"\x00", b'"\x01"',
    b"[" * 100_000, b'{"x":' * 100_000, b'{"x": ' + b"1" * 5000 + b"}",
]  # fmt: skip


async def test_a_body_that_is_no_json_is_400(admin: Client) -> None:
    for body in UNREADABLE:
        answer = await admin.post("/api/v1/packs", body)
        assert (answer.status, answer.body["error"].startswith("The body is not valid JSON")) == (
            400, True,
        ), body[:20]  # fmt: skip


async def test_a_body_of_another_shape_or_kind_is_422(admin: Client) -> None:
    for body in (b"[]", b"7", b"null", b'"x"', b""):
        assert (await admin.post("/api/v1/packs", body)).status == 422, body
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml", "%", ""):
        headers = {"content-type": kind}
        answer = await admin.send("POST", "/api/v1/packs", json.dumps(LAB).encode(), headers)
        assert answer.status in (415, 422), kind


async def test_json_up_to_the_bound_is_taken(admin: Client) -> None:
    deep: Any = 2**63 - 1
    for _ in range(DEEPEST - 2):
        deep = [deep]
    made = await admin.post("/api/v1/packs", {**LAB, "config": {"x": deep, "y": "\\u0000"}})
    assert (made.status, made.data["config"]) == (201, {"x": deep, "y": "\\u0000"})


async def test_a_wrong_page_is_422_and_names_the_parameter(admin: Client) -> None:
    for name in ("page", "page_size", "per_page", "limit"):
        for wrong in ("0", "-1", "x", "1.5", "9" * 5000):
            answer = await admin.get("/api/v1/packs", **{name: wrong})
            assert (answer.status, list(answer.body["details"])) == (422, [name])
    assert (await admin.get("/api/v1/actions", executable_with_current_access="si")).status == 422
    far = await admin.get("/api/v1/packs", page=10**30, page_size=1000, limit=3, unknown="x")
    assert (far.refs, far.body["pagination"]["page_size"]) == ([], 100)


async def test_a_body_that_is_too_large_is_413_and_not_read(admin: Client) -> None:
    announced = await admin.send(
        "POST", "/api/v1/packs", endless(b"x" * 1000), {"content-length": str(20_000_000)}
    )
    assert (announced.status, announced.body["code"]) == (413, "too_large")
    assert admin.sent_pieces == []
    streamed = await admin.send("POST", "/api/v1/packs", endless(b" " * 1_000_000))
    assert (streamed.status, streamed.body["code"]) == (413, "too_large")
    assert sum(admin.sent_pieces) < 12_000_000
    assert "10485760" in streamed.body["error"]
    assert streamed.headers["connection"] == "close"


async def test_an_upload_that_is_too_large_is_413_and_not_read(admin: Client) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b"}
    start = b'--b\r\nContent-Disposition: form-data; name="pack"\r\n\r\n'
    path = "/api/v1/packs/upload"
    answer = await admin.send("POST", path, endless(b"x" * 10_000_000, start), headers)
    assert (answer.status, answer.body["code"]) == (413, "too_large")
    assert sum(admin.sent_pieces) < 120_000_000
    assert (await admin.get("/api/v1/packs")).refs == ["core"]


def endless(piece: bytes, start: bytes = b"") -> Iterator[bytes]:
    yield start
    while True:
        yield piece


def linked(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A sound pack with one entry more."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as tar:
        for path, text in SHOP.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        extra = tarfile.TarInfo(name)
        extra.type, extra.linkname = kind, "/etc/passwd"
        tar.addfile(extra)
    return found.getvalue()


BROKEN_PACKS: list[tuple[str, bytes]] = [
    ("no archive", b"nonsense"),
    ("nothing", b""),
    ("no pack.yaml", archive({"actions/x.yaml": "ref: x"}).getvalue()),
    ("broken YAML", archive({**SHOP, "rules/on_order.yaml": "ref: [\n"}).getvalue()),
    ("a ref outside", archive({**SHOP, "actions/x.yaml": "ref: core.x\nlabel: X\n"}).getvalue()),
    ("an unknown action", archive({**SHOP, "rules/on_order.yaml": "ref: r\ntrigger_ref: ordered\naction_ref: x\n"}).getvalue()),
    ("a symbolic link", linked("actions/link", tarfile.SYMTYPE)),
    ("a hard link", linked("actions/link", tarfile.LNKTYPE)),
    ("a device", linked("actions/device", tarfile.CHRTYPE)),
    ("a way out", linked("../evil.py")),
    ("an absolute path", linked("/tmp/evil.py")),
    ("a broken end", archive(SHOP).getvalue()[:-20]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "content"), BROKEN_PACKS, ids=[name for name, _ in BROKEN_PACKS])
async def test_a_broken_pack_is_refused_and_leaves_nothing(
    admin: Client, world: World, root: Path, what: str, content: bytes
) -> None:
    answer = await admin.upload(content, force="true")
    assert (answer.status, answer.body["code"]) == (422, "invalid_input"), what
    assert answer.body["error"]
    assert (await admin.get("/api/v1/packs")).refs == ["core"]
    assert (await admin.get("/api/v1/rules")).refs == []
    assert world.told.found == []
    assert [path for path in root.rglob("*") if path.is_file() and path.name != ".lock"] == []


async def test_a_broken_update_leaves_the_pack_as_it_was(admin: Client) -> None:
    await admin.upload(archive(SHOP).getvalue())
    before = [(await admin.get(f"/api/v1/{p}")).body for p in ("packs", "actions", "rules")]
    broken = {**SHOP, "pack.yaml": "ref: shop\nlabel: New\nversion: 2.0.0\n", "rules/x.yaml": "{"}
    answer = await admin.upload(archive(broken).getvalue(), force="true")
    assert "rules/x.yaml" in answer.body["error"]
    assert answer.body["details"]["faults"]
    assert [(await admin.get(f"/api/v1/{p}")).body for p in ("packs", "actions", "rules")] == before


async def test_a_form_that_cannot_be_read_is_told_in_words(admin: Client) -> None:
    path, kind = "/api/v1/packs/upload", "multipart/form-data; boundary=a-boundary-of-tests"
    whole = form_of({"pack": archive(SHOP).getvalue()})
    for body, headers, status in (
        (whole, {}, 415),
        (whole, {"content-type": "multipart/form-data"}, 400),
        (whole, {"content-type": "multipart/form-data; boundary=other"}, 400),
        (whole[:-30], {"content-type": kind}, 400),
        (b"", {"content-type": kind}, 400),
        (form_of({"force": b"true"}), {"content-type": kind}, 422),
        (form_of({"pack": b"x", "force": b"perhaps"}), {"content-type": kind}, 422),
    ):
        answer = await admin.send("POST", path, [body], headers)
        assert answer.status == status, answer.raw
        assert answer.body["error"]
