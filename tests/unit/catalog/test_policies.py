"""policies/*.yaml: what has an effect is loaded, what has none yet is told, what is wrong refuses the pack."""

from typing import Any

import pytest

from attune.kernel.errors import InvalidInput
from tests.unit.catalog.packs import SHOP, parsed

LIMIT = "concurrency: {limit: 2}\n"
POLICY = f"ref: shop.ship_slowly\naction_ref: shop.ship\n{LIMIT}"


def with_policy(text: str) -> dict[str, str]:
    return {**SHOP, "policies/p.yaml": text}


def faults_of(text: str) -> Any:
    with pytest.raises(InvalidInput) as refusal:
        parsed(with_policy(text))
    return refusal.value.fields["faults"]


def test_a_policy_of_an_action_is_read_with_its_defaults() -> None:
    pack = parsed(with_policy(POLICY))
    [policy] = pack.policies
    assert (policy.ref, policy.name, policy.enabled) == ("shop.ship_slowly", "Ship Slowly", True)
    assert (policy.scope_type, policy.scope_ref) == ("action", "shop.ship")
    assert (policy.concurrency_limit, policy.concurrency_method) == (2, "enqueue")
    assert (policy.priority, policy.tags, pack.warnings) == (0, [], ())


def test_every_field_may_be_written_out() -> None:
    pack = parsed(
        with_policy(
            "ref: slow\nname: Slow\ndescription: One by one.\nenabled: false\npriority: -3\n"
            "scope: {type: action, action_ref: ship, pack_ref: null}\ntags: [night]\n"
            "concurrency: {limit: 0, method: enqueue, parameters: []}\n"
            "rate_limit: null\nquotas: []\nwindows: []\nblackouts: []\n"
        )
    )
    [policy] = pack.policies
    assert (policy.ref, policy.name, policy.description) == ("shop.slow", "Slow", "One by one.")
    assert (policy.enabled, policy.priority, policy.tags) == (False, -3, ["night"])
    assert (policy.scope_ref, policy.concurrency_limit) == ("shop.ship", 0)
    assert pack.warnings == ()


def test_a_scope_without_a_type_is_that_of_the_narrowest_thing_named() -> None:
    for scope in ("scope: {action_ref: core.echo}", "action_ref: core.echo\npack_ref: core"):
        [policy] = parsed(with_policy(f"ref: p\n{scope}\n{LIMIT}")).policies
        assert (policy.scope_type, policy.scope_ref) == ("action", "core.echo")


UNSUPPORTED = {
    "pack": (f"pack_ref: shop\n{LIMIT}", "pack_ref: a policy over a pack is not supported yet, only one over an action"),
    "pack in a scope": (
        "scope: {type: pack, pack_ref: shop}\n" + LIMIT,
        "scope.type: a policy over a pack is not supported yet, only one over an action",
    ),
    "everything": (
        "scope: {type: global}\n" + LIMIT,
        "scope.type: a policy over everything is not supported yet, only one over an action",
    ),
    "cancel": (
        "action_ref: ship\nconcurrency: {limit: 1, method: cancel}\n",
        "concurrency.method: 'cancel' is not supported yet, only 'enqueue'",
    ),
    "groups": (
        "action_ref: ship\nconcurrency: {limit: 1, parameters: [host]}\n",
        "concurrency.parameters: a limit for each group is not supported yet",
    ),
    "rate": (
        f"action_ref: ship\n{LIMIT}rate_limit: {{max_executions: 1, window_seconds: 60}}\n",
        "rate_limit: is not supported yet",
    ),
    "quotas": (
        f"action_ref: ship\n{LIMIT}quotas: [{{quota_type: running_executions, limit: 1}}]\n",
        "quotas: is not supported yet",
    ),
    "windows": (
        f"action_ref: ship\n{LIMIT}windows: [{{days: [mon], start: '08:00', end: '17:00'}}]\n",
        "windows: is not supported yet",
    ),
    "blackouts": (
        f"action_ref: ship\n{LIMIT}blackouts: [{{from: a, to: b}}]\n",
        "blackouts: is not supported yet",
    ),
    "no limit": (
        "action_ref: ship\n",
        "concurrency.limit: is required: policies without it are not supported yet",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_has_no_effect_yet_is_told_and_not_loaded(name: str) -> None:
    text, rule = UNSUPPORTED[name]
    pack = parsed(with_policy(f"ref: shop.p\n{text}"))
    assert pack.warnings == (f"policies/p.yaml: {rule}; the policy is not loaded",)
    assert pack.policies == ()
    assert [action.ref for action in pack.actions] == ["shop.ship"]


BAD = {
    "nothing": ("{}", ["ref: is required", "action_ref: is required"]),
    "foreign ref": (
        POLICY.replace("shop.ship_slowly", "other.p"),
        ["ref: 'other.p' must start with the pack's own ref, 'shop.'"],
    ),
    "negative limit": (POLICY.replace("2", "-1"), ["concurrency.limit: must be at least 0"]),
    "huge limit": (POLICY.replace("2", "3000000000"), ["concurrency.limit: is too large"]),
    "limit as text": (
        POLICY.replace("2", "two"),
        ["concurrency.limit: must be an integer, not a text"],
    ),
    "limit missing": (
        "ref: p\naction_ref: ship\nconcurrency: {}\n",
        ["concurrency.limit: is required"],
    ),
    "concurrency as a number": (
        "ref: p\naction_ref: ship\nconcurrency: 2\n",
        ["concurrency: must be a mapping, not a number"],
    ),
    "method": (
        "ref: p\naction_ref: ship\nconcurrency: {limit: 1, method: enque}\n",
        ["concurrency.method: unknown word 'enque'; did you mean 'enqueue'?"],
    ),
    "type": (
        f"ref: p\nscope: {{type: actoin, action_ref: ship}}\n{LIMIT}",
        ["scope.type: unknown word 'actoin'; did you mean 'action'?"],
    ),
    "type without ref": (
        f"ref: p\nscope: {{type: action}}\n{LIMIT}",
        ["scope.action_ref: is required"],
    ),
    "said twice": (
        f"ref: p\naction_ref: ship\nscope: {{action_ref: ship}}\n{LIMIT}",
        ["scope: says what action_ref or pack_ref says; write one of them"],
    ),
    "no ref": (
        f"ref: p\naction_ref: Ship It\n{LIMIT}",
        [
            (
                "action_ref: 'shop.Ship It' is not a ref: it has the form pack.name, of lower case letters,"
                " digits, _ and -"
            )
        ],
    ),
    "priority": (f"{POLICY}priority: high\n", ["priority: must be an integer, not a text"]),
}


@pytest.mark.parametrize("name", BAD)
def test_each_fault_names_the_field_and_the_rule(name: str) -> None:
    text, expected = BAD[name]
    assert faults_of(text) == [f"policies/p.yaml: {fault}" for fault in expected]


def test_an_unknown_field_is_a_warning_that_names_the_way_to_it() -> None:
    pack = parsed(
        with_policy("ref: p\naction_ref: ship\nconcurrency: {limit: 2, metod: enqueue}\n")
    )
    assert pack.warnings == (
        "policies/p.yaml: concurrency.metod: an unknown field, which is ignored; did you mean 'method'?",
    )
    assert len(pack.policies) == 1


def test_a_ref_that_stands_in_two_files_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'shop.ship_slowly' is also in policies/a.yaml"):
        parsed({**SHOP, "policies/a.yaml": POLICY, "policies/b.yaml": POLICY})
