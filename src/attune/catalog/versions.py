"""Whether what a process has compiled from the catalog still holds.

The catalog's version rises in the transaction of every change. A step reads it first: one row, and then no
compiled rule or schema can be older than the transaction that uses it. One that need not wait for the row alone begins
under the version that its process met last, and has it confirmed before it writes.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from attune.kernel.errors import Outdated
from attune.store.database import Answer, Tx

K = TypeVar("K")
V = TypeVar("V")

_VERSION: Final = "SELECT version FROM catalog_version"
_WAITED_FOR: Final = f"{_VERSION} FOR SHARE"


class CatalogTaken(Outdated):
    """Somebody is changing the catalog, and may be about to want what this step has locked."""

    code = "catalog_taken"


async def current_version(tx: Tx) -> int:
    return await tx.one(int, _VERSION)


class Versions:
    """Remembers the version that a process met last."""

    def __init__(self) -> None:
        self.last = 0
        self._taken = False

    def taken(self) -> None:
        """A step that began anew because of `CatalogTaken` waits for whoever that is, before it locks anything."""
        self._taken = True

    async def expect(self, tx: Tx) -> "Expected":
        """The present version is asked for along with the statements that follow, and awaited only where none is known."""
        told = await tx.answer_later(int, _WAITED_FOR if self._taken else _VERSION)
        self._taken = False
        if not self.last:
            await tx.settle()
        if told.rows:
            [self.last] = told.rows
        return Expected(self.last, self, told)


@dataclass(frozen=True, slots=True)
class Expected:
    """The version under which a step begins."""

    number: int
    _versions: Versions
    _told: Answer[int]

    async def confirm(self, tx: Tx) -> None:
        """Before anything is written, or made of it: a step that began under another version begins anew."""
        await tx.settle()
        [self._versions.last] = self._told.rows
        if self._told.rows != [self.number]:
            raise Outdated("The catalog has changed meanwhile.")

    def taken(self) -> None:
        self._versions.taken()


async def raise_version(tx: Tx) -> None:
    await tx.execute("UPDATE catalog_version SET version = version + 1")


class VersionedCache(Generic[K, V]):
    """What was worked out under one version. A newer version empties it; an older one neither reads nor writes.

    Steps of several threads may use it at once: each operation is a single one on a dictionary.
    """

    def __init__(self) -> None:
        self._version = 0
        self._kept: dict[K, V] = {}

    def get(self, version: int, key: K) -> V | None:
        if version > self._version:
            self._version, self._kept = version, {}
        return self._kept.get(key) if version == self._version else None

    def forget(self, version: int, key: K) -> None:
        if version == self._version:
            self._kept.pop(key, None)

    def put(self, version: int, key: K, value: V) -> None:
        if version == self._version:
            self._kept[key] = value
