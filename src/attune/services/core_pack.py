"""The core pack as a part: loaded before anything that names what is in it."""

from attune.catalog.packs import PackInstaller
from attune.kernel.clock import Clock
from attune.kernel.settings import Settings
from attune.store.database import Database


class CorePack:
    """Loads the core pack of this version where it is not loaded yet. Any number of processes may at once."""

    name = "core pack"

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._installer = PackInstaller(database, clock, settings.data_dir / "packs")

    async def start(self) -> None:
        await self._installer.install_core()

    async def stop(self) -> None:
        """Nothing to let go of: what was loaded stays."""
