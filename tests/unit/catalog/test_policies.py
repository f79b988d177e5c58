"""policies/*.yaml: what a policy may say, and what refuses the pack."""

from typing import Any

import pytest

from attune.kernel.errors import InvalidInput
from tests.unit.catalog.packs import SHOP, parsed

LIMIT = "concurrency: {limit: 2}\n"
POLICY = f"ref: shop.ship_slowly\naction_ref: shop.ship\n{LIMIT}"
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


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
    assert (policy.concurrency_floor, policy.concurrency_ceiling) == (None, None)
    assert (policy.concurrency_parameters, policy.rate_limit, policy.quotas) == ([], None, [])
    assert (policy.windows, policy.blackouts) == ([], [])
    assert (policy.priority, policy.tags, pack.warnings) == (0, [], ())


def test_every_field_may_be_written_out() -> None:
    pack = parsed(
        with_policy(
            "ref: slow\nname: Slow\ndescription: One by one.\nenabled: false\npriority: -3\n"
            "scope: {type: action, action_ref: ship, pack_ref: null}\ntags: [night]\n"
            "concurrency: {limit: 0, method: cancel, parameters: [host, customer]}\n"
            "rate_limit: {max_executions: 10, window_seconds: 0.5}\n"
            "quotas: [{quota_type: running_executions, limit: 0, per: identity}]\n"
            "windows: [{days: [sat, sun], start: 22:00, end: 06:00, timezone: Europe/Berlin}]\n"
            "blackouts: [{from: 2026-12-24, to: 2026-12-26}]\n"
        )
    )
    [policy] = pack.policies
    assert (policy.ref, policy.name, policy.description) == ("shop.slow", "Slow", "One by one.")
    assert (policy.enabled, policy.priority, policy.tags) == (False, -3, ["night"])
    assert (policy.scope_ref, policy.concurrency_limit) == ("shop.ship", 0)
    assert (policy.concurrency_method, policy.concurrency_parameters) == (
        "cancel",
        ["host", "customer"],
    )
    assert policy.rate_limit == {"max_executions": 10, "window_seconds": 0.5}
    assert policy.quotas == [{"quota_type": "running_executions", "limit": 0, "per": "identity"}]
    assert policy.windows == [
        {"days": ["sat", "sun"], "start": "22:00", "end": "06:00", "timezone": "Europe/Berlin"}
    ]
    assert policy.blackouts == [{"from": "2026-12-24", "to": "2026-12-26"}]
    assert pack.warnings == ()


def test_a_window_without_days_and_zone_is_of_all_days_and_utc() -> None:
    text = "ref: p\naction_ref: ship\nwindows: [{start: '08:00', end: '24:00'}]\n"
    [policy] = parsed(with_policy(text)).policies
    assert policy.windows == [{"days": DAYS, "start": "08:00", "end": "24:00", "timezone": "UTC"}]
    assert policy.concurrency_limit is None


def test_a_scope_without_a_type_is_that_of_the_narrowest_thing_named() -> None:
    for scope, expected in (
        ("scope: {action_ref: core.echo}", ("action", "core.echo")),
        ("action_ref: core.echo\npack_ref: core", ("action", "core.echo")),
        ("pack_ref: shop", ("pack", "shop")),
        ("scope: {pack_ref: shop}", ("pack", "shop")),
        ("scope: {type: pack, pack_ref: core}", ("pack", "core")),
        ("scope: {type: global}", ("global", None)),
    ):
        [policy] = parsed(with_policy(f"ref: p\n{scope}\n{LIMIT}")).policies
        assert (policy.scope_type, policy.scope_ref) == expected, scope


@pytest.mark.parametrize(
    ("written", "bounds"),
    [
        ("limit: auto", (1, 100)),
        ("limit: auto, floor: 5", (5, 100)),
        ("limit: auto, floor: 500", (500, 500)),
        ("limit: auto, floor: 2, ceiling: 9", (2, 9)),
    ],
)
def test_an_automatic_limit_has_a_floor_and_a_ceiling(
    written: str, bounds: tuple[int, int]
) -> None:
    [policy] = parsed(
        with_policy(f"ref: p\naction_ref: ship\nconcurrency: {{{written}}}\n")
    ).policies
    assert (policy.concurrency_floor, policy.concurrency_ceiling) == bounds
    assert policy.concurrency_limit is None


BAD = {
    "nothing": ("{}", ["ref: is required", "action_ref: is required"]),
    "foreign ref": (
        POLICY.replace("shop.ship_slowly", "other.p"),
        ["ref: 'other.p' must start with the pack's own ref, 'shop.'"],
    ),
    "no gate": (
        "ref: p\naction_ref: ship\nwindows: []\n",
        [
            (
                "concurrency: a policy needs at least one of concurrency, rate_limit, quotas, windows,"
                " blackouts"
            )
        ],
    ),
    "type": (
        f"ref: p\nscope: {{type: actoin, action_ref: ship}}\n{LIMIT}",
        ["scope.type: unknown word 'actoin'; did you mean 'action'?"],
    ),
    "type without ref": (
        f"ref: p\nscope: {{type: action}}\n{LIMIT}",
        ["scope.action_ref: is required"],
    ),
    "pack without ref": (f"ref: p\nscope: {{type: pack}}\n{LIMIT}", ["scope.pack_ref: is required"]),
    "empty scope": (f"ref: p\nscope: {{}}\n{LIMIT}", ["scope.type: is required: action, global, pack"]),
    "scope as text": (f"ref: p\nscope: ship\n{LIMIT}", ["scope: must be a mapping, not a text"]),
    "said twice": (
        f"ref: p\naction_ref: ship\nscope: {{action_ref: ship}}\n{LIMIT}",
        ["scope: says what action_ref or pack_ref says; write one of them"],
    ),
    "everything and an action": (
        f"ref: p\nscope: {{type: global, action_ref: ship}}\n{LIMIT}",
        ["scope.action_ref: does not belong to a policy over everything"],
    ),
    "another pack's action": (
        f"ref: p\naction_ref: ship\npack_ref: core\n{LIMIT}",
        ["pack_ref: 'shop.ship' is not an action of this pack"],
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
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_each_fault_names_the_field_and_the_rule(name: str) -> None:
    text, expected = BAD[name]
    assert faults_of(text) == [f"policies/p.yaml: {fault}" for fault in expected]


BAD_GATES = {
    "concurrency: 2": "concurrency: must be a mapping, not a number",
    "concurrency: {}": "concurrency.limit: is required",
    "concurrency: {limit: -1}": "concurrency.limit: must be at least 0",
    "concurrency: {limit: 3000000000}": "concurrency.limit: is too large",
    "concurrency: {limit: two}": "concurrency.limit: must be an integer or 'auto', not a text",
    "concurrency: {limit: 1.5}": "concurrency.limit: must be an integer, not a number",
    "concurrency: {limit: true}": "concurrency.limit: must be an integer, not a truth value",
    "concurrency: {limit: 1, method: enque}": "concurrency.method: unknown word 'enque'; did you mean 'enqueue'?",
    "concurrency: {limit: 1, parameters: host}": "concurrency.parameters: must be a list of names of parameters",
    "concurrency: {limit: 1, parameters: [a, a]}": "concurrency.parameters: names 'a' twice",
    "concurrency: {limit: 1, metod: cancel}": "concurrency.metod: an unknown field; did you mean 'method'?",
    "concurrency: {limit: 1, floor: 1}": "concurrency.floor: is only for a limit of 'auto'",
    "concurrency: {limit: auto, floor: 0}": "concurrency.floor: must be at least 1",
    "concurrency: {limit: auto, floor: 9, ceiling: 3}": "concurrency.ceiling: must be at least the floor, 9",
    "rate_limit: 5": "rate_limit: must be a mapping, not a number",
    "rate_limit: {max_executions: 5}": "rate_limit.window_seconds: is required",
    "rate_limit: {max_executions: 0, window_seconds: 1}": "rate_limit.max_executions: must be at least 1",
    "rate_limit: {max_executions: 1, window_seconds: 0}": "rate_limit.window_seconds: must be above 0",
    "rate_limit: {max_executions: 1, window_seconds: 3e9}": "rate_limit.window_seconds: is too large",
    "rate_limit: {max_executions: 1, window_seconds: 1m}": "rate_limit.window_seconds: must be a number, not a text",
    "quotas: {limit: 1}": "quotas: must be a list, not a mapping",
    "quotas: [5]": "quotas.0: must be a mapping, not a number",
    "quotas: [{quota_type: execution_total, limit: 1}]": "quotas.0.quota_type: unknown word 'execution_total'; did you mean 'executions_total'?",
    "quotas: [{quota_type: executions_total}]": "quotas.0.limit: is required",
    "quotas: [{quota_type: executions_total, limit: -1}]": "quotas.0.limit: must be at least 0",
    "quotas: [{quota_type: executions_total, limit: 1, per: day}]": "quotas.0.per: unknown word 'day'; known are identity",
    "windows: [{start: '08:00'}]": "windows.0.end: is required",
    "windows: [{start: '8', end: '09:00'}]": "windows.0.start: '8' is not a time of day; write HH:MM, such as '08:30'",
    "windows: [{start: '24:00', end: '09:00'}]": "windows.0.start: '24:00' ends a day and starts none; write '00:00'",
    "windows: [{start: '08:00', end: '24:01'}]": "windows.0.end: '24:01' is not a time of day; write HH:MM, such as '08:30'",
    "windows: [{start: 8, end: '09:00'}]": "windows.0.start: must be text, not a number",
    "windows: [{start: '08:00', end: '09:00', days: []}]": "windows.0.days: must name at least one day",
    "windows: [{start: '08:00', end: '09:00', days: [mon, tues]}]": "windows.0.days: unknown day 'tues'; did you mean 'tue'?",
    "windows: [{start: '08:00', end: '09:00', days: mon}]": "windows.0.days: must be a list of days: mon, tue, wed, thu, fri, sat, sun",
    "windows: [{start: '08:00', end: '09:00', timezone: Europe/Berln}]": "windows.0.timezone: unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
    "windows: [{start: '08:00', end: '09:00', timezone: ../../etc/passwd}]": "windows.0.timezone: unknown time zone '../../etc/passwd'",
    "windows: [{start: '08:00', end: '09:00', timezone: localtime}]": "windows.0.timezone: unknown time zone 'localtime'",
    "windows: [{start: '08:00', end: '09:00', zone: UTC}]": "windows.0.zone: an unknown field; did you mean 'timezone'?",
    "blackouts: [{from: 2026-12-24}]": "blackouts.0.to: is required",
    "blackouts: [{from: tomorrow, to: 2026-12-24}]": "blackouts.0.from: 'tomorrow' is neither a moment (2026-12-24T18:00:00Z) nor a date (2026-12-24)",
    "blackouts: [{from: 2026-12-24T18:00, to: 2026-12-25}]": "blackouts.0.from: '2026-12-24T18:00' has no offset; end it with Z or one such as +01:00",
    "blackouts: [{from: 2026-02-28, to: 2026-02-30}]": "blackouts.0.to: '2026-02-30' does not exist",
    "blackouts: [{from: 2026-12-24, to: 9999-12-31}]": "blackouts.0.to: must be in the years 1970 to 9990",
    "blackouts: [{from: 2026-12-24, to: 2026-12-23}]": "blackouts.0.to: must be after 'from'",
    "blackouts: [{from: '2026-12-24T01:00:00+01:00', to: '2026-12-24T00:00:00Z'}]": "blackouts.0.to: must be after 'from'",
}  # fmt: skip


@pytest.mark.parametrize("gate", BAD_GATES)
def test_each_fault_of_a_gate_names_the_way_to_its_field(gate: str) -> None:
    assert faults_of(f"ref: p\naction_ref: ship\n{gate}\n") == [
        f"policies/p.yaml: {BAD_GATES[gate]}"
    ]


def test_an_automatic_limit_is_one_of_an_action() -> None:
    for scope in ("pack_ref: shop", "scope: {type: global}"):
        found = faults_of(f"ref: p\n{scope}\nconcurrency: {{limit: auto}}\n")
        rule = "concurrency.limit: 'auto' is only for a policy over an action"
        assert found == [f"policies/p.yaml: {rule}"]


def test_all_faults_are_found_in_one_pass() -> None:
    text = (
        "ref: p\nscope: {type: pak}\nconcurrency: {limit: -1}\nrate_limit: {}\n"
        "windows: [{start: '08:00', end: '09:00'}, {start: x, end: y}]\n"
    )
    fields = [fault.split(": ")[1] for fault in faults_of(text)]
    assert fields == [
        "scope.type", "concurrency.limit", "rate_limit.max_executions", "rate_limit.window_seconds",
        "windows.1.start", "windows.1.end",
    ]  # fmt: skip


def test_more_windows_than_anybody_needs_are_refused() -> None:
    windows = ", ".join(["{start: '08:00', end: '09:00'}"] * 51)
    found = faults_of(f"ref: p\naction_ref: ship\nwindows: [{windows}]\n")
    assert found == ["policies/p.yaml: windows: must not have more than 50"]


def test_an_unknown_field_of_the_policy_itself_is_a_warning() -> None:
    pack = parsed(with_policy(f"{POLICY}priorty: 3\n"))
    assert pack.warnings == (
        "policies/p.yaml: priorty: an unknown field, which is ignored; did you mean 'priority'?",
    )
    assert len(pack.policies) == 1


def test_a_ref_that_stands_in_two_files_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'shop.ship_slowly' is also in policies/a.yaml"):
        parsed({**SHOP, "policies/a.yaml": POLICY, "policies/b.yaml": POLICY})
