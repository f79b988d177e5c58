"""Which policy binds, and which lane and pools it leads to."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.model import Policy
from attune.kernel.ids import IdentityId, PolicyId
from attune.pipeline.policies.decide import (
    WHOLE,
    effective,
    group_of,
    grouping_of,
    in_effect,
    limit_pool,
    may_be_group,
    pool_keys,
    quota_pool,
    shape_of,
    stamp_of,
    totals,
)
from attune.pipeline.policies.model import EffectivePolicy, Method, Quota, QuotaType, Rate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EACH = Quota(QuotaType.RUNNING, 1, "identity")
ALL = Quota(QuotaType.TOTAL, 9)


def policy(number: int, scope: str, ref: str | None, **fields: Any) -> Policy:
    return Policy(
        id=PolicyId(number),
        ref=f"p.{number}",
        name="x",
        pack=None,
        pack_ref=None,
        scope_type=scope,
        scope_ref=ref,
        is_adhoc=True,
        created=NOW,
        updated=NOW,
        **fields,
    )


def terms(**fields: Any) -> EffectivePolicy:
    defaults = {"policy": PolicyId(1), "policy_ref": "p.one", "scope": "action"}
    return EffectivePolicy(**{**defaults, **fields})


def test_the_action_goes_before_the_pack_and_that_before_everything_whatever_the_priority() -> None:
    some = [
        policy(1, "global", None, priority=9),
        policy(2, "pack", "a", priority=5),
        policy(3, "action", "a.one"),
    ]
    assert [in_effect(some[:n], "a.one", "a") for n in (3, 2, 1, 0)] == [*some[::-1], None]


def test_what_is_disabled_or_over_something_else_binds_nobody() -> None:
    others = [
        policy(1, "action", "a.one", enabled=False),
        policy(2, "action", "a.two"),
        policy(3, "pack", "b"),
        policy(4, "pack", "a.one"),
        policy(5, "action", "a"),
    ]
    assert in_effect(others, "a.one", "a") is None


@given(
    priorities=st.lists(st.integers(-2, 2), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_of_one_scope_the_highest_priority_binds_then_the_oldest_in_whatever_order_they_are_read(
    priorities: list[int], seed: int
) -> None:
    some = [policy(n, "action", "a.one", priority=p) for n, p in enumerate(priorities, start=1)]
    expected = next(one for one in some if one.priority == max(priorities))
    random.Random(seed).shuffle(some)
    assert in_effect(some, "a.one", "a") == expected


def test_its_words_are_kept_as_they_are_written() -> None:
    written = policy(
        7,
        "action",
        "a.one",
        concurrency_limit=2,
        concurrency_method="cancel",
        concurrency_parameters=["customer"],
        rate_limit={"max_executions": 3, "window_seconds": 1.5},
        quotas=[{"quota_type": "running_executions", "limit": 4, "per": "identity"}],
        blackouts=[{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}],
    )
    bound = effective(written)
    assert (bound.limit, bound.method, bound.parameters) == (2, Method.CANCEL, ("customer",))
    assert bound.rate == Rate(3, 1.5)
    assert bound.quotas == (Quota(QuotaType.RUNNING, 4, "identity"),)
    assert bound.blackouts[0].begin == NOW
    assert msgspec.json.decode(msgspec.json.encode(bound), type=EffectivePolicy) == bound


def test_the_stamp_tells_other_words_and_another_policy_of_the_same_words() -> None:
    stamps = [
        stamp_of(None),
        stamp_of(terms(limit=1)),
        stamp_of(terms(limit=2)),
        stamp_of(terms(limit=1, policy=PolicyId(2))),
    ]
    assert len(set(stamps)) == 4
    assert stamp_of(terms(limit=1)) == stamps[1]


class TestGroups:
    def test_without_parameters_an_action_has_one_lane(self) -> None:
        assert group_of(terms(limit=1), {"customer": "red"}, None) == WHOLE
        assert group_of(None, {"customer": "red"}, None) == WHOLE

    def test_a_missing_value_is_null_and_a_group_of_its_own(self) -> None:
        by_customer = terms(limit=1, parameters=("customer",))
        assert group_of(by_customer, {}, None) == '{"customer":null}'
        assert group_of(by_customer, {"customer": "null"}, None) == '{"customer":"null"}'

    def test_the_names_stand_in_the_order_of_the_policy(self) -> None:
        bound = terms(limit=1, parameters=("b", "a"))
        key = group_of(bound, {"a": 1, "b": 2, "c": 3}, None)
        assert (key, shape_of(key)) == ('{"b":2,"a":1}', ("b", "a"))

    @pytest.mark.parametrize("value", ["x" * 121, {"deep": ["x" * 200]}, list(range(100))])
    def test_what_is_long_is_a_digest_that_tells_values_apart(self, value: object) -> None:
        bound = terms(limit=1, parameters=("v",))
        key = group_of(bound, {"v": value}, None)
        assert len(key) < 60
        assert "xxx" not in key
        assert key != group_of(bound, {"v": [value]}, None)

    def test_what_is_secret_is_a_digest_however_short(self) -> None:
        bound = terms(limit=1, parameters=("pin",))
        one, two = (
            group_of(bound, {"pin": pin}, None, frozenset({"pin"})) for pin in ("4711", "4712")
        )
        assert one != two
        assert "4711" not in one

    def test_a_quota_of_each_identity_splits_by_it(self) -> None:
        bound = terms(quotas=(EACH,))
        assert grouping_of(bound) == ("@identity",)
        keys = [group_of(bound, {}, IdentityId(n)) for n in (7, 8)]
        assert keys == ['{"@identity":7}', '{"@identity":8}']
        assert group_of(bound, {}, None) == '{"@identity":null}'

    def test_only_what_the_policy_can_lead_to_may_be_a_group(self) -> None:
        bound = terms(limit=1, parameters=("customer",))
        assert may_be_group(bound, '{"customer":"red"}')
        odd = ["red", "[]", "{", '{"colour":"red"}', '{ "customer": "red" }', WHOLE]
        assert not [key for key in odd if may_be_group(bound, key)]
        assert may_be_group(None, WHOLE)


class TestPools:
    def test_a_limit_of_an_action_is_the_lanes_own_count(self) -> None:
        assert limit_pool(terms(limit=1), WHOLE) is None
        assert pool_keys(terms(limit=1, parameters=("c",)), '{"c":1}') == ()

    def test_a_limit_over_a_pack_is_one_pool_or_one_for_each_value(self) -> None:
        assert limit_pool(terms(limit=1, scope="pack"), WHOLE) == WHOLE
        by_value = terms(limit=1, scope="pack", parameters=("c",))
        assert limit_pool(by_value, '{"c":1}') == '{"c":1}'

    def test_with_a_quota_of_each_identity_the_limit_is_over_all_of_them(self) -> None:
        bound = terms(limit=5, quotas=(EACH,))
        key = group_of(bound, {}, IdentityId(7))
        assert limit_pool(bound, key) == WHOLE
        assert quota_pool(EACH, key) == '{"@identity":7}'
        assert pool_keys(bound, key) == (WHOLE, '{"@identity":7}')

    def test_a_rate_and_a_quota_of_all_share_the_pool_of_the_whole_policy(self) -> None:
        bound = terms(rate=Rate(1, 1), quotas=(ALL,))
        assert pool_keys(bound, WHOLE) == (WHOLE,)
        assert totals(bound) == (ALL,)
        assert (totals(None), pool_keys(None, WHOLE)) == ((), ())

    def test_a_lane_of_several_pools_is_in_that_of_the_whole_policy_too(self) -> None:
        bound = terms(limit=1, scope="pack", parameters=("c",), quotas=(EACH,))
        key = group_of(bound, {"c": 1}, IdentityId(7))
        assert pool_keys(bound, key) == (WHOLE, '{"@identity":7}', '{"c":1}')
