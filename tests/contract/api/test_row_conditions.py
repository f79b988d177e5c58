"""A list holds exactly what the decision about one thing allows, on each database."""

from typing import Any

import msgspec

from attune.identities.constraints import Target
from attune.identities.model import Caller, TokenType
from attune.identities.rights import Rights, indexed, read_grants
from attune.identities.row_conditions import Columns
from attune.kernel.ids import ExecutionId, IdentityId
from attune.store.database import Database, Tx

ME = IdentityId(7)
THINGS = "ROWS(:things AS thing(id bigint, ref text, pack_ref text, owner bigint, kind text, executor bigint))"
COLUMNS = Columns(
    id="id",
    ref="ref",
    pack_ref="pack_ref",
    owner="owner",
    owner_type="kind",
    executor="executor",
    line="(id = :scope OR id > 3)",
)


class Thing(msgspec.Struct, frozen=True):
    id: int
    ref: str
    pack_ref: str | None
    owner: IdentityId | None
    kind: str | None
    executor: IdentityId | None

    @property
    def target(self) -> Target:
        line = [self.id, 1] if self.id > 3 else [self.id]
        return Target(
            id=self.id,
            ref=self.ref,
            pack_ref=self.pack_ref,
            owner=self.owner,
            owner_type=self.kind,
            executor=self.executor,
            line=tuple(map(ExecutionId, line)),
        )


ALL = [
    Thing(1, "a.x", "a", None, "pack", ME),
    Thing(2, "a.y", "a", ME, None, None),
    Thing(3, "b.x", "b", IdentityId(8), "pack", IdentityId(8)),
    Thing(4, "x", None, None, "action", ME),
]
CONSTRAINTS: list[list[dict[str, Any]]] = [
    [],
    [{}],
    [{"pack_refs": ["a"]}],
    [{"pack_refs": ["a"], "owner": "none"}, {"refs": ["x"]}],
    [{"ids": [1, 4, 99]}],
    [{"owner": "self"}],
    [{"owner": "none", "owner_types": ["pack", "sensor"]}],
    [{"owner": "any", "owner_types": "action"}],
    [{"visibility": "public"}],
    [{"encrypted": True}, {"refs": []}],
    [{"attributes": {"team": "a"}, "pack_refs": ["b"]}],
    [{"attributes": {"team": "b"}}],
    [{"execution_scope": "self"}],
    [{"execution_scope": "descendants"}, {"nonsense": 1}],
    [{"execution_scope": "any", "refs": ["a.y"]}],
]


def callers() -> list[Caller]:
    fields: dict[str, Any] = {
        "identity": ME,
        "login": "me",
        "permission_set_refs": (),
        "attributes": {"team": "a"},
    }
    return [
        Caller(**fields, token_type=TokenType.ACCESS),
        Caller(**fields, token_type=TokenType.EXECUTION, metadata={"execution_id": 1}),
    ]


async def test_the_condition_of_a_list_is_the_decision_about_each(database: Database) -> None:
    async def listed(tx: Tx, rights: Rights) -> list[int]:
        found = rights.condition("keys", "read", COLUMNS)
        return await tx.all(
            int,
            f"SELECT id FROM {THINGS} WHERE {found.sql} ORDER BY id",
            things=[msgspec.structs.astuple(thing) for thing in ALL],
            **found.values,
        )

    seen = set()
    for caller in callers():
        for constraints in CONSTRAINTS:
            grants = [
                {"resource": "keys", "actions": ["read"], "constraints": each}
                for each in constraints
            ]
            rights = Rights(caller, indexed(read_grants(grants)))
            expected = [each.id for each in ALL if rights.allows("keys", "read", each.target)]
            assert await database.read(listed, rights) == expected, constraints
            seen.add(tuple(expected))
    assert len(seen) >= 8
