"""The demo pack as a part of `attune up`: something to play with in the first minute."""

from pathlib import Path
from typing import Final

import structlog

from attune import catalog
from attune.catalog import rows
from attune.catalog.loading.model import Mode
from attune.catalog.packs import PackInstaller
from attune.catalog.rows import PACKS
from attune.kernel.clock import Clock
from attune.kernel.errors import Conflict, InvalidInput
from attune.kernel.settings import Settings
from attune.store.database import Database

DEMO_PACK: Final = Path(catalog.__file__).parent / "demo_pack"

_REF: Final = "demo"
_MARK: Final = {"shipped_with": "attune"}

_log = structlog.get_logger()


class DemoPack:
    """Loads the demo pack of this version where it is not loaded yet. It stands on the core pack.

    A pack `demo` that somebody wrote himself is left alone, and nothing about the demo keeps a process from
    starting: it is only a demo.
    """

    name = "demo pack"

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._database = database
        self._installer = PackInstaller(database, clock, settings.data_dir / "packs")

    async def start(self) -> None:
        present = await self._database.read(rows.find, PACKS, _REF)
        if present is not None and not _MARK.items() <= present.meta.items():
            _log.info("There is another pack of that name; the demo pack is not loaded.", ref=_REF)
            return
        try:
            await self._installer.install_folder(DEMO_PACK, Mode.CHANGED)
        except (Conflict, InvalidInput) as error:
            _log.warning("The demo pack could not be loaded.", error=error.message)

    async def stop(self) -> None:
        """Nothing to let go of: what was loaded stays."""
