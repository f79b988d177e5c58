"""How many rows each statement really reads on PostgreSQL."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from attune.store.postgresql_tx import PostgreSQLTx

_NOT_EXPLAINED: Final = ("EXPLAIN", "SAVEPOINT", "ROLLBACK", "ANALYZE")


class Scan(msgspec.Struct, frozen=True):
    """One scan of a table by one statement, with all rows that it looked at, kept or not."""

    table: str
    rows: int
    sql: str


class Reads:
    """Explains every statement just before it runs, in a savepoint of its own, so nothing happens twice."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scans: list[Scan] = []
        self._fetch = PostgreSQLTx._fetch
        self._execute = PostgreSQLTx._execute
        monkeypatch.setattr(PostgreSQLTx, "_fetch", self._explained(self._fetch))
        monkeypatch.setattr(PostgreSQLTx, "_execute", self._explained(self._execute))
        monkeypatch.setattr(PostgreSQLTx, "later", self._later(PostgreSQLTx.later))
        monkeypatch.setattr(PostgreSQLTx, "answer_later", self._answer(PostgreSQLTx.answer_later))

    def above(self, rows: int) -> list[Scan]:
        return [scan for scan in self.scans if scan.rows > rows]

    def _explained(self, original: Any) -> Any:
        async def explained(tx: PostgreSQLTx, sql: str, parameters: dict[str, Any]) -> Any:
            if not sql.lstrip().startswith(_NOT_EXPLAINED):
                await self._explain(tx, sql, parameters)
            return await original(tx, sql, parameters)

        return explained

    def _later(self, original: Any) -> Any:
        async def later(tx: PostgreSQLTx, sql: str, /, **parameters: Any) -> None:
            await self._explain(tx, sql, parameters)
            await original(tx, sql, **parameters)

        return later

    def _answer(self, original: Any) -> Any:
        async def answer(tx: PostgreSQLTx, kind: Any, sql: str, /, **parameters: Any) -> Any:
            await self._explain(tx, sql, parameters)
            return await original(tx, kind, sql, **parameters)

        return answer

    async def _explain(self, tx: PostgreSQLTx, sql: str, parameters: dict[str, Any]) -> None:
        await self._execute(tx, "SAVEPOINT before", {})
        asked = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}"
        _, [[plan]] = await self._fetch(tx, asked, parameters)
        await self._execute(tx, "ROLLBACK TO SAVEPOINT before", {})
        found = json.loads(plan) if isinstance(plan, str) else plan
        self.scans += scans(found[0]["Plan"], sql)


def scans(node: dict[str, Any], sql: str) -> Iterator[Scan]:
    """Those of a plan and of the plans below it."""
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        looked_at = node["Actual Rows"] + sum(
            node.get(name, 0)
            for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        )
        yield Scan(node["Relation Name"], looked_at * node["Actual Loops"], sql)
    for below in node.get("Plans", ()):
        yield from scans(below, sql)
