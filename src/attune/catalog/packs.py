"""Installing packs: from a folder or an upload, the files and the rows, whole or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from attune.catalog.files import PackFiles
from attune.catalog.loading.model import LoadSummary, Mode
from attune.catalog.loading.steps import load_pack
from attune.catalog.sources.folder import read_pack
from attune.catalog.sources.model import PackSource
from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError
from attune.store.database import Database, Tx

CORE_PACK: Final = Path(__file__).parent / "core_pack"

# Asked once the pack was read and before anything of it is kept; it raises to refuse it.
Approval = Callable[[PackSource], Awaitable[None]]

_log = structlog.get_logger()


async def _approve_all(_source: PackSource) -> None:
    pass


class PackInstaller:
    """Any number of processes may install at once; those that share a root take turns."""

    def __init__(self, database: Database, clock: Clock, root: Path) -> None:
        self._database = database
        self._clock = clock
        self._files = PackFiles(root, clock)

    @property
    def files(self) -> PackFiles:
        return self._files

    async def install_core(self) -> LoadSummary:
        return await self.install_folder(CORE_PACK, Mode.CHANGED)

    async def install_folder(
        self, folder: Path, mode: Mode, approve: Approval = _approve_all
    ) -> LoadSummary:
        return await self._install(lambda at: self._files.stage_folder(folder, at), mode, approve)

    async def install_archive(
        self, archive: BinaryIO, mode: Mode, approve: Approval = _approve_all
    ) -> LoadSummary:
        """A .tar.gz with pack.yaml at its root or in one top folder."""
        return await self._install(lambda at: self._files.stage_archive(archive, at), mode, approve)

    async def _install(
        self, stage: Callable[[Path], Path], mode: Mode, approve: Approval
    ) -> LoadSummary:
        async with self._files.staging() as staging:
            staged = await asyncio.to_thread(stage, staging)
            source = await asyncio.to_thread(read_pack, staged)
            await approve(source)
            pack_dir, is_new = await asyncio.to_thread(self._files.keep, staged, source.ref)
            try:
                summary = await self._database.run(
                    load_pack, source, self._clock.now(), pack_dir=pack_dir, mode=mode
                )
            except Exception:
                if is_new and not await self._is_used(pack_dir):
                    await asyncio.to_thread(self._files.remove, pack_dir)
                raise
        _log.info(
            "Loaded a pack.", pack_ref=summary.pack_ref, version=summary.version,
            changed=summary.changed, warnings=len(summary.warnings),
        )  # fmt: skip
        return summary

    async def _is_used(self, pack_dir: str) -> bool:
        """A commit whose answer was lost may have happened; while nobody can tell, the files stay."""
        try:
            return await self._database.read(_is_referenced, pack_dir)
        except AttuneError:
            return True


async def _is_referenced(tx: Tx, pack_dir: str) -> bool:
    found = await tx.first(int, "SELECT id FROM pack WHERE pack_dir = :pack_dir", pack_dir=pack_dir)
    return found is not None
