"""Whether what a process has compiled from the catalog still holds.

The catalog's version rises in the transaction of every change. A step reads it first: one row, and then no
compiled rule or schema can be older than the transaction that uses it.
"""

from typing import Generic, TypeVar

from attune.store.database import Tx

K = TypeVar("K")
V = TypeVar("V")


async def current_version(tx: Tx) -> int:
    return await tx.one(int, "SELECT version FROM catalog_version")


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

    def put(self, version: int, key: K, value: V) -> None:
        if version == self._version:
            self._kept[key] = value
