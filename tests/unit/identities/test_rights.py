"""What grants allow, with each of their constraints."""

from typing import Any

import pytest

from attune.identities.constraints import Target
from attune.identities.model import Caller, TokenType
from attune.identities.rights import Rights, indexed, read_grants, standard_grants
from attune.identities.row_conditions import Columns
from attune.kernel.errors import Forbidden
from attune.kernel.ids import ExecutionId, IdentityId

ME, OTHER = IdentityId(7), IdentityId(8)


def caller(*sets: str, execution: int | None = None, **metadata: Any) -> Caller:
    if execution is not None:
        metadata["execution_id"] = execution
    return Caller(
        identity=ME,
        login="me",
        token_type=TokenType.EXECUTION if metadata else TokenType.ACCESS,
        permission_set_refs=sets,
        attributes={"team": "a", "level": 1},
        metadata=metadata,
    )


def rights(*grants: dict[str, Any], who: Caller | None = None) -> Rights:
    return Rights(who or caller(), indexed(read_grants(grants)))


def reading(**constraints: Any) -> dict[str, Any]:
    return {"resource": "keys", "actions": ["read"], "constraints": constraints}


EXECUTION = Target(id=5, line=(ExecutionId(5), ExecutionId(3)), executor=ME)

JUDGED: list[tuple[dict[str, Any], Target, bool]] = [
    ({}, Target(), True),
    ({"pack_refs": ["shop"]}, Target(pack_ref="shop"), True),
    ({"pack_refs": "shop"}, Target(pack_ref="shop"), True),
    ({"pack_refs": ["shop"]}, Target(pack_ref="core"), False),
    ({"pack_refs": ["shop"]}, Target(), False),
    ({"pack_refs": []}, Target(pack_ref="shop"), False),
    ({"pack_refs": 7}, Target(pack_ref="shop"), False),
    ({"refs": ["a.b"]}, Target(ref="a.b"), True),
    ({"refs": ["a.b"]}, Target(ref="a.bc"), False),
    ({"ids": [1, 2]}, Target(id=2), True),
    ({"ids": [1, 2]}, Target(id=3), False),
    ({"ids": [True]}, Target(id=1), False),
    ({"ids": ["1"]}, Target(id=1), False),
    ({"owner": "self"}, Target(owner=ME), True),
    ({"owner": "self"}, Target(owner=OTHER), False),
    ({"owner": "self"}, Target(owner=None), False),
    ({"owner": "self"}, Target(), False),
    ({"owner": "none"}, Target(owner=None), True),
    ({"owner": "none"}, Target(owner=ME), False),
    ({"owner": "none"}, Target(), False),
    ({"owner": "any"}, Target(owner=OTHER), True),
    ({"owner": "mine"}, Target(owner=ME), False),
    ({"owner_types": ["pack"]}, Target(owner_type="pack"), True),
    ({"owner_types": ["pack"]}, Target(owner_type="action"), False),
    ({"owner_types": ["pack"], "owner_refs": ["shop"]}, Target(owner_type="pack"), False),
    ({"owner_refs": ["shop"]}, Target(owner_ref="shop"), True),
    ({"visibility": "public"}, Target(visibility="public"), True),
    ({"visibility": ["public"]}, Target(visibility="private"), False),
    ({"encrypted": True}, Target(encrypted=True), True),
    ({"encrypted": False}, Target(encrypted=True), False),
    ({"encrypted": False}, Target(), False),
    ({"encrypted": "no"}, Target(encrypted=False), False),
    ({"attributes": {"team": "a"}}, Target(), True),
    ({"attributes": {"team": "a", "level": 1}}, Target(), True),
    ({"attributes": {"level": True}}, Target(), False),
    ({"attributes": {"team": "b"}}, Target(), False),
    ({"attributes": {"town": None}}, Target(), False),
    ({"attributes": ["team"]}, Target(), False),
    ({"execution_scope": "any"}, Target(), True),
    ({"execution_scope": "self"}, EXECUTION, True),
    ({"execution_scope": "descendants"}, Target(id=5, executor=OTHER), False),
    ({"execution_scope": "self"}, Target(id=5), False),
    ({"execution_scope": "others"}, EXECUTION, False),
    ({"weekday": "monday"}, Target(), False),
]


@pytest.mark.parametrize(("constraints", "target", "expected"), JUDGED)
def test_a_constraint_holds_or_it_does_not(
    constraints: dict[str, Any], target: Target, expected: bool
) -> None:
    assert rights(reading(**constraints)).allows("keys", "read", target) is expected


def test_a_program_s_scope_is_its_execution_and_those_below() -> None:
    for own, scope, expected in (
        (5, "self", True),
        (3, "self", False),
        (3, "descendants", True),
        (5, "descendants", True),
        (4, "descendants", False),
    ):
        mine = rights(reading(execution_scope=scope), who=caller(execution=own))
        assert mine.allows("keys", "read", EXECUTION) is expected, (own, scope)


def test_one_of_several_grants_is_enough_and_each_is_of_its_own_resource_and_action() -> None:
    mine = rights(reading(refs=["a"]), reading(refs=["b"]))
    assert mine.allows("keys", "read", Target(ref="b"))
    assert not mine.allows("keys", "update", Target(ref="b"))
    assert not mine.allows("packs", "read", Target(ref="b"))
    assert mine.may_ever("keys", "read")
    assert not mine.may_ever("keys", "update")


def test_the_administrator_may_do_everything() -> None:
    mine = Rights(caller("core.admin"), {})
    assert mine.allows("audit_log", "manage", Target(owner=OTHER))
    assert mine.condition("keys", "read", Columns()).sql == "true"
    assert mine.covers(read_grants([reading()]))


def test_a_refusal_names_the_permission() -> None:
    with pytest.raises(Forbidden, match=r"the permission rules:delete on 'a\.b'") as refused:
        rights().require("rules", "delete", Target(ref="a.b"))
    assert refused.value.fields == {"permission": "rules:delete"}


COVERED: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({}, {"refs": ["a"]}, True),
    ({"refs": ["a"]}, {}, False),
    ({"refs": ["a", "b"]}, {"refs": ["a"]}, True),
    ({"refs": ["a"]}, {"refs": ["a", "b"]}, False),
    ({"refs": ["a"]}, {"pack_refs": ["a"]}, False),
    ({"refs": ["a"]}, {"refs": ["a"], "owner": "self"}, True),
    ({"owner": "any"}, {}, True),
    ({"owner": "self"}, {"owner": "any"}, False),
    ({"owner": "self"}, {"owner": "self"}, True),
    ({"execution_scope": "descendants"}, {"execution_scope": "self"}, True),
    ({"execution_scope": "self"}, {"execution_scope": "descendants"}, False),
    ({"execution_scope": "self"}, {"execution_scope": "any"}, False),
    ({"encrypted": False}, {"encrypted": True}, False),
    ({"attributes": {"team": "a"}}, {"attributes": {"team": "a", "level": 1}}, True),
    ({"attributes": {"team": "a"}}, {"attributes": {"level": 1}}, False),
]


@pytest.mark.parametrize(("own", "other", "expected"), COVERED)
def test_a_gift_is_within_what_its_giver_has(
    own: dict[str, Any], other: dict[str, Any], expected: bool
) -> None:
    assert rights(reading(**own)).covers(read_grants([reading(**other)])) is expected


def test_a_gift_of_another_action_is_not_covered() -> None:
    more = {"resource": "keys", "actions": ["read", "decrypt"]}
    assert not rights(reading()).covers(read_grants([more]))
    assert rights(reading(), {"resource": "keys", "actions": ["decrypt"]}).covers(
        read_grants([more])
    )


def test_the_standard_set_is_of_an_execution_s_own_action_and_pack() -> None:
    who = caller(
        "standard",
        execution=5,
        standard_access_action_refs=["shop.ship"],
        standard_access_pack_refs=["shop"],
    )
    mine = Rights(who, indexed(standard_grants(who)))
    own = Target(owner_type="action", owner_ref="shop.ship")
    assert mine.allows("keys", "decrypt", own)
    assert mine.allows("artifacts", "delete", Target(owner_type="pack", owner_ref="shop"))
    assert not mine.allows("keys", "update", own)
    assert not mine.allows("keys", "read", Target(owner_type="pack", owner_ref="shop.ship"))
    assert not mine.allows("keys", "read", Target(owner_type="identity", owner_ref="shop"))
    assert standard_grants(caller("standard")) == ()
