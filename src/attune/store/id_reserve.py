"""Ids of PostgreSQL's sequences, fetched ahead."""


class IdReserve:
    """Ids fetched ahead, so that most transactions need not ask. They are ids, not an order of commits."""

    def __init__(self) -> None:
        self._free: dict[str, list[int]] = {}

    def take(self, table: str, count: int) -> list[int] | None:
        """The lowest ids in reserve, or None if there are too few."""
        free = self._free.get(table, [])
        if len(free) < count:
            return None
        found, self._free[table] = free[:count], free[count:]
        return found

    def has(self, table: str) -> bool:
        """Whether it ever had ids of that table."""
        return table in self._free

    def add(self, table: str, ids: list[int]) -> None:
        self._free[table] = sorted([*self._free.get(table, []), *ids])

    def add_all(self, other: "IdReserve") -> None:
        for table, ids in other._free.items():
            self.add(table, ids)
