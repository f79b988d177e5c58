"""Installing packs: from an upload, and from a folder or an archive that the server can reach."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request

from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.errors import WrongRequest
from attune.api.multipart import flag, read_form
from attune.api.pack_approval import approval_by
from attune.api.pack_models import (
    InstallPackRequest,
    PackInstallResponse,
    PackResponse,
    RegisteredPackResponse,
    RegisterPackRequest,
)
from attune.api.parts import ApiParts
from attune.catalog import rows
from attune.catalog.archives import MAX_UPLOAD_BYTES
from attune.catalog.loading.model import LoadSummary, Mode
from attune.catalog.packs import Approval
from attune.catalog.refs import shown
from attune.identities.rights import Rights, refusal
from attune.kernel.errors import InvalidInput, NotConfigured
from attune.kernel.messages import MessageType

UPLOAD_PATH: Final = "/api/v1/packs/upload"
UPLOAD_BODY_BYTES: Final = MAX_UPLOAD_BYTES + 200_000  # the form's other fields, and its boundaries

_FILE: Final = "pack"
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]*://|git@|[\w.-]+@[\w.-]+:", re.IGNORECASE)
_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [_FILE],
                    "properties": {
                        _FILE: {
                            "type": "string",
                            "contentMediaType": "application/octet-stream",
                            "description": "A .tar.gz with pack.yaml at its root or in one top folder.",
                        },
                        "force": {"type": "boolean", "description": "Update a pack that exists."},
                        "skip_tests": {"type": "boolean"},
                    },
                }
            }
        },
    }
}

Load = Callable[[Approval], Awaitable[LoadSummary]]


def pack_install_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/packs", "packs")
    _add_upload(routes, parts)
    _add_server_side(routes, parts)
    return routes


def _add_upload(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post(
        "/upload",
        status_code=201,
        summary="Install a pack from an archive",
        openapi_extra=_FORM,
        responses=refusals(400, 403, 409, 413, 415),
    )
    async def upload(request: Request, rights: RightsOf) -> Answer[PackInstallResponse]:
        _check_may_install(rights)
        form = await read_form(request, _FILE, MAX_UPLOAD_BYTES)
        try:
            archive = form.file
            if archive is None:
                raise InvalidInput(f"{_FILE}: is required, as a file", field=_FILE)
            flag(form, "skip_tests")
            mode = Mode.FORCE if flag(form, "force") else Mode.NEW
            return Answer(
                data=await _installed(
                    parts, rights, lambda ok: parts.packs.install_archive(archive, mode, ok)
                )
            )
        finally:
            form.close()


def _add_server_side(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post(
        "/register",
        status_code=201,
        summary="Install a pack from a folder of the server",
        responses=refusals(400, 403, 409),
    )
    async def register(
        rights: RightsOf, body: RegisterPackRequest
    ) -> Answer[RegisteredPackResponse]:
        _check_may_install(rights)
        folder = Path(body.path)
        if not _is(folder, Path.is_dir):
            raise WrongRequest(f"path: there is no folder {shown(body.path)} here", field="path")
        mode = Mode.FORCE if body.force else Mode.NEW
        load: Load = lambda ok: parts.packs.install_folder(folder, mode, ok)  # noqa: E731
        made = await _installed(parts, rights, load)
        fields = {**made.pack.model_dump(), "warnings": made.warnings}
        return Answer(data=RegisteredPackResponse(**fields, pack=made.pack))

    @routes.post(
        "/install",
        summary="Install or update a pack from a source",
        responses=refusals(400, 403, 501),
    )
    async def install(rights: RightsOf, body: InstallPackRequest) -> Answer[PackInstallResponse]:
        _check_may_install(rights)
        return Answer(data=await _installed(parts, rights, _source(parts, body.source)))


def _source(parts: ApiParts, source: str) -> Load:
    if _REMOTE.match(source):
        raise NotConfigured(
            "Installing packs from a git repository or over the network is not configured;"
            " name a folder or a .tar.gz of the server, or upload the pack."
        )
    path = Path(source)
    if _is(path, Path.is_dir):
        return lambda ok: parts.packs.install_folder(path, Mode.FORCE, ok)
    if not _is(path, Path.is_file):
        raise WrongRequest(
            f"source: there is no folder or archive {shown(source)} here", field="source"
        )
    return lambda ok: _install_file(parts, path, ok)


async def _install_file(parts: ApiParts, path: Path, ok: Approval) -> LoadSummary:
    try:
        archive = path.open("rb")
    except OSError as error:
        raise WrongRequest(f"source: cannot be read: {error.strerror}", field="source") from error
    with archive:
        return await parts.packs.install_archive(archive, Mode.FORCE, ok)


async def _installed(parts: ApiParts, rights: Rights, load: Load) -> PackInstallResponse:
    summary = await load(approval_by(rights, parts.grants, parts.database))
    parts.grants.forget()
    if summary.changed:
        created = bool(summary.pack.created)
        kind = MessageType.PACK_REGISTERED if created else MessageType.PACK_UPDATED
        parts.notices.pack_loaded(kind, summary.pack_id, summary.pack_ref)
        await parts.flow.arrange()
    pack = await parts.database.read(rows.get, rows.PACKS, summary.pack_id)
    return PackInstallResponse(
        pack=PackResponse.model_validate(pack), warnings=list(summary.warnings)
    )


def _check_may_install(rights: Rights) -> None:
    """Before anything is read; the pack's own ref is judged once it is known."""
    if not rights.may_ever("packs", "install"):
        raise refusal("packs", "install")


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    """A name that no file system takes is the name of nothing."""
    try:
        return kind(path)
    except (OSError, ValueError):
        return False
