"""A pack's files become plain values, with every synonym; or every fault is told, in its exact words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.retrying import Cause, Limits, Retry
from attune.catalog.sources.parsing import parse_pack
from attune.kernel.errors import InvalidInput
from tests.unit.catalog.packs import ACTION, HEAD, RULE, SHOP, TRIGGER, parsed


def faults_of(files: dict[str, str]) -> Any:
    with pytest.raises(InvalidInput) as refusal:
        parsed(files)
    return refusal.value.fields["faults"]


def test_a_pack_without_a_fault() -> None:
    pack = parsed(SHOP)
    assert (pack.ref, pack.label, pack.version, pack.enabled) == ("shop", "Shop", "1.2.3", True)
    [action], [trigger], [rule] = pack.actions, pack.triggers, pack.rules
    assert (action.ref, action.runtime_ref, action.entrypoint) == (
        "shop.ship",
        "core.python",
        "ship.py",
    )
    assert (action.parameter_delivery, action.parameter_format, action.output_format) == (
        "stdin",
        "json",
        "text",
    )
    assert trigger.param_schema == {"region": {"type": "string"}}
    assert (rule.ref, rule.trigger_ref, rule.action_ref) == (
        "shop.on_order",
        "shop.ordered",
        "shop.ship",
    )
    assert pack.warnings == ()


def test_synonyms_of_the_contract() -> None:
    pack = parsed(
        {
            "pack.yaml": "ref: shop\nname: The Shop\nversion: 1.0.0-rc.1+b7\nsystem: true\n",
            "actions/a.yaml": (
                "name: send_mail\nref: shop.send_mail\nrunner_type: Node.js\nentry_point: a.js\n"
                "output_schema: {id: {type: string}}\ntimeout: 5\nruntime_version: '>=18'\n"
                "default_execution_permission_set_refs: [standard]\n"
            ),
            "actions/a.js": "",
            "permission_sets/p.yaml": "ref: shop.clerk\ngrants:\n- {resource: actions, action: execute}\n",
            "rules/r.yaml": (
                "ref: shop.r\ntrigger_ref: core.crontimer\naction_ref: shop.send_mail\n"
                "conditions:\n- {field: a, operator: equals, value: 1}\nstrict: true\n"
            ),
        }
    )
    assert (pack.label, pack.is_standard) == ("The Shop", True)
    [action] = pack.actions
    assert (action.label, action.runtime_ref) == ("Send Mail", "core.nodejs")
    assert action.out_schema == {"id": {"type": "string"}}
    assert (action.timeout_seconds, action.runtime_version_constraint) == (5, ">=18")
    assert action.default_execution_permission_set_refs == ["standard"]
    assert pack.permission_sets[0].grants == [{"resource": "actions", "actions": ["execute"]}]
    [rule] = pack.rules
    assert rule.conditions == {"all": [{"field": "a", "operator": "equals", "value": 1}]}
    assert (rule.label, rule.strict) == ("R", True)


@pytest.mark.parametrize(
    ("word", "ref"),
    [
        ("shell", "core.shell"), ("bash", "core.shell"), ("sh", "core.shell"),
        ("python", "core.python"), ("python3", "core.python"), ("node", "core.nodejs"),
        ("nodejs", "core.nodejs"), ("node.js", "core.nodejs"), ("native", "core.native"),
        ("builtin", "core.native"), ("core.python", "core.python"), ("other.perl", "other.perl"),
        ("ruby", "shop.ruby"), ("rb", "shop.ruby"),
    ],
)  # fmt: skip
def test_each_runner_type_means_a_runtime(word: str, ref: str) -> None:
    pack = parsed(
        {
            "pack.yaml": HEAD,
            "runtimes/ruby.yaml": "ref: shop.ruby\nname: Ruby\naliases: [rb]\nexecution_config: {x: [1]}\n",
            "actions/a.yaml": f"ref: shop.a\nrunner_type: {word}\nentry_point: a\n",
        }
    )
    assert pack.actions[0].runtime_ref == ref
    assert pack.runtimes[0].execution_config == {"x": [1]}


NO_CONSTRAINT = (
    "'{}' is no version constraint; use *, 3.11, >=3.10,<4, ==3.11, !=3.11, ~=3.10, ^1.2 or ~1.2"
)
BAD = {
    "head missing": ({"README": "x"}, ["pack.yaml: the pack has no such file"]),
    "head empty": ({"pack.yaml": ""}, ["pack.yaml: must be a mapping of fields"]),
    "head without fields": (
        {"pack.yaml": "label: x"},
        ["pack.yaml: ref: is required", "pack.yaml: version: is required"],
    ),
    "pack ref": (
        {"pack.yaml": "ref: My.Shop\nversion: 1.0.0"},
        [
            ("pack.yaml: ref: 'My.Shop' is not a pack's ref: it has lower case letters, digits, _ and -,"
            " without a dot")
        ],
    ),
    "version as a number": (
        {"pack.yaml": "ref: shop\nversion: 1.10"},
        ["pack.yaml: version: must be text, not '1.1'; put it in quotes"],
    ),
    "version": (
        {"pack.yaml": "ref: shop\nversion: v1"},
        ["pack.yaml: version: 'v1' is not a semantic version such as 1.0.0"],
    ),
    "version with zeros": (
        {"pack.yaml": "ref: shop\nversion: 1.02.0"},
        ["pack.yaml: version: '1.02.0' is not a semantic version such as 1.0.0"],
    ),
    "types of the head": (
        {"pack.yaml": HEAD + "tags: web\nenabled: maybe\nmeta: []\nruntime_deps: [1]\nconfig: 5\n"},
        [
            "pack.yaml: enabled: must be true or false, not a text",
            "pack.yaml: config: must be a mapping, not a number",
            "pack.yaml: meta: must be a mapping, not a list",
            "pack.yaml: tags: must be a list, not a text",
            "pack.yaml: runtime_deps: must be a list of texts",
        ],
    ),
    "runner type": (
        {**SHOP, "actions/ship.yaml": ACTION.replace("python", "pyhton")},
        ["actions/ship.yaml: runner_type: unknown word 'pyhton'; did you mean 'python'?"],
    ),
    "foreign ref": (
        {**SHOP, "actions/ship.yaml": ACTION.replace("shop.ship", "core.ship")},
        ["actions/ship.yaml: ref: 'core.ship' must start with the pack's own ref, 'shop.'"],
    ),
    "ref that only begins alike": (
        {**SHOP, "triggers/ordered.yaml": TRIGGER.replace("shop.", "shopping.")},
        ["triggers/ordered.yaml: ref: 'shopping.ordered' must start with the pack's own ref, 'shop.'"],
    ),
    "ref of an action without the pack": (
        {**SHOP, "actions/ship.yaml": ACTION.replace("shop.ship", "ship")},
        [
            ("actions/ship.yaml: ref: 'ship' is not a ref: it has the form pack.name, of lower case letters,"
            " digits, _ and -")
        ],
    ),
    "twice the same": (
        {**SHOP, "actions/again.yaml": ACTION},
        ["actions/ship.yaml: ref: 'shop.ship' is also in actions/again.yaml"],
    ),
    "no entry point": (
        {**SHOP, "actions/ship.yaml": "ref: shop.ship\nrunner_type: shell\n"},
        ["actions/ship.yaml: entry_point: is required"],
    ),
    "entry point above": (
        {**SHOP, "actions/ship.yaml": ACTION.replace("ship.py", "../../etc/passwd")},
        ["actions/ship.yaml: entry_point: '../../etc/passwd' is not inside the pack"],
    ),
    "entry point absolute": (
        {**SHOP, "actions/ship.yaml": ACTION.replace("ship.py", "/bin/sh")},
        ["actions/ship.yaml: entry_point: '/bin/sh' is not inside the pack"],
    ),
    "choices": (
        {
            **SHOP,
            "actions/ship.yaml": ACTION
            + "parameter_delivery: env\nparameter_format: jsn\noutput_format: xml\ntimeout: 0\nmax_retries: -1\n",
        },
        [
            "actions/ship.yaml: parameter_delivery: unknown word 'env'; known are file, stdin",
            "actions/ship.yaml: parameter_format: unknown word 'jsn'; did you mean 'json'?",
            "actions/ship.yaml: output_format: unknown word 'xml'; known are json, jsonl, text, yaml",
            "actions/ship.yaml: timeout: must be at least 1",
            "actions/ship.yaml: max_retries: must be at least 0",
        ],
    ),
    "retries and limits": (
        {
            **SHOP,
            "actions/ship.yaml": ACTION
            + "retry: {delay: -1, backof: linear}\nlimits: {memory_mb: 0}\nreuse: often\n"
            + "runtime_version: latest\nrequired_worker_runtimes: {node: '>=18', python: three}\n",
        },
        [
            "actions/ship.yaml: runtime_version: " + NO_CONSTRAINT.format("latest"),
            "actions/ship.yaml: required_worker_runtimes.python: " + NO_CONSTRAINT.format("three"),
            "actions/ship.yaml: retry.backof: an unknown field; did you mean 'backoff'?",
            "actions/ship.yaml: retry.delay: must be at least 0",
            "actions/ship.yaml: limits.memory_mb: must be at least 1",
            "actions/ship.yaml: reuse: must be true or false, not a text",
        ],
    ),
    "retries of another type": (
        {**SHOP, "actions/ship.yaml": ACTION + "retry: 3\nlimits: [1]\n"},
        [
            "actions/ship.yaml: retry: must be a mapping, not a number",
            "actions/ship.yaml: limits: must be a mapping, not a list",
        ],
    ),
    "placement": (
        {**SHOP, "actions/ship.yaml": ACTION + "worker_tolerations: [{operator: equal}]\nworker_selector: {a: 1}\n"},
        [
            "actions/ship.yaml: worker_selector: Expected 'str', got 'int' at '[...]'",
            "actions/ship.yaml: worker_tolerations: Object missing required field 'key' at '[0]'",
        ],
    ),
    "schema": (
        {**SHOP, "actions/ship.yaml": ACTION + "parameters:\n  to: {type: sting}\n"},
        ["actions/ship.yaml: parameters.to.type: unknown type 'sting'; did you mean 'string'?"],
    ),
    "default of another type": (
        {**SHOP, "triggers/ordered.yaml": TRIGGER + "output: {n: {type: integer, default: x}}\n"},
        ["triggers/ordered.yaml: output.n.default: must be an integer"],
    ),
    "rule without targets": (
        {**SHOP, "rules/on_order.yaml": "ref: on_order\nconditions: always\n"},
        [
            "rules/on_order.yaml: trigger_ref: is required",
            "rules/on_order.yaml: conditions: must be a mapping or a list of conditions",
            "rules/on_order.yaml: action_ref: is required",
        ],
    ),
    "conditions and templates": (
        {
            **SHOP,
            "rules/on_order.yaml": RULE
            + "conditions:\n- {field: a, operator: eqals, value: 1}\naction_params: {m: ['a {{ x']}\n",
        },
        [
            "rules/on_order.yaml: conditions.all[0].operator: unknown operator 'eqals'; did you mean 'equals'?",
            "rules/on_order.yaml: action_params.m[0], column 3: {{ is not closed; for the two characters themselves write {{ '{{' }}",
        ],
    ),
    "grants": (
        {
            **SHOP,
            "permission_sets/p.yaml": (
                "ref: shop.p\ngrants:\n- {resource: action, actions: [reed]}\n- {resource: keys}\n- read\n"
                "- {resource: keys, actions: [read], constraints: {pack: [x]}}\n"
            ),
        },
        [
            "permission_sets/p.yaml: grants[0].resource: unknown word 'action'; did you mean 'actions'?",
            "permission_sets/p.yaml: grants[0].actions: unknown word 'reed'; did you mean 'read'?",
            "permission_sets/p.yaml: grants[1].actions: is required",
            "permission_sets/p.yaml: grants[2]: must be a mapping of resource and actions",
            "permission_sets/p.yaml: grants[3].constraints: unknown word 'pack'; did you mean 'pack_refs'?",
        ],
    ),
    "several files at once": (
        {**SHOP, "rules/on_order.yaml": "- a\n", "triggers/ordered.yaml": "a: b: c\n"},
        [
            "triggers/ordered.yaml: line 1: mapping values are not allowed in this context",
            "rules/on_order.yaml: must be a mapping of fields",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_each_fault_names_file_field_and_rule(name: str) -> None:
    files, expected = BAD[name]
    assert faults_of(files) == expected


def test_the_message_tells_all_faults_and_stays_short() -> None:
    files = {"pack.yaml": HEAD, **{f"rules/r{i:02}.yaml": "[]" for i in range(30)}}
    with pytest.raises(InvalidInput) as refusal:
        parsed(files)
    assert refusal.value.message.endswith("r19.yaml: must be a mapping of fields; and 10 more")
    assert len(faults_of(files)) == 30


def test_what_is_unknown_or_not_yet_supported_is_a_warning() -> None:
    pack = parsed(
        {
            **SHOP,
            "actions/ship.yaml": ACTION + "timout: 5\n",
            "actions/lost.yaml": ACTION.replace("ship", "lost"),
            "actions/flow.yaml": "ref: shop.flow\nworkflow_file: workflows/flow.workflow.yaml\n",
            "actions/workflows/flow.workflow.yaml": "version: [",
            "sensors/s.yaml": "ref: shop.s",
            "sensors/s.py": "",
            "queues/q.yaml": "ref: shop.q",
            "workflows/w.yaml": "[",
        }
    )
    assert pack.warnings == (
        "actions/flow.yaml: workflow_file: workflows are not yet supported; the action cannot run",
        "actions/lost.yaml: entry_point: the pack has no file 'lost.py'",
        "actions/ship.yaml: timout: an unknown field, which is ignored; did you mean 'timeout'?",
        "actions/workflows/flow.workflow.yaml: workflows are not yet supported; the file is kept",
        "queues/q.yaml: queues are not yet supported; the file is kept",
        "sensors/s.yaml: sensors are not yet supported; the file is kept",
        "workflows/w.yaml: workflows are not yet supported; the file is kept",
    )
    assert {action.ref for action in pack.actions} == {"shop.ship", "shop.lost", "shop.flow"}


def test_an_action_says_how_it_is_tried_again_and_what_it_may_use() -> None:
    more = (
        "max_retries: 4\non_worker_lost: fail\nreuse: true\n"
        "retry:\n  on: [failed, timeout]\n  delay: 2.5\n  backoff: exponential\n  exit_codes: [75]\n"
        "limits: {memory_mb: 256, cpu_seconds: 1}\n"
    )
    pack = parsed({**SHOP, "actions/ship.yaml": ACTION + more})
    assert pack.warnings == ()
    [action] = pack.actions
    assert (action.max_retries, action.on_worker_lost, action.reuse) == (4, "fail", True)
    assert action.retry == Retry(
        on=(Cause.FAILED, Cause.TIMEOUT), delay=2.5, backoff="exponential", exit_codes=(75,)
    )
    assert action.limits == Limits(memory_mb=256, cpu_seconds=1)
    [plain] = parsed(SHOP).actions
    assert (plain.retry, plain.limits, plain.reuse) == (None, None, False)


def test_an_entry_point_may_stand_at_the_root_or_above_actions() -> None:
    files = {**SHOP, "lib/x.py": "", "actions/ship.yaml": ACTION.replace("ship.py", "../lib/x.py")}
    assert parsed(files).warnings == ()
    assert (
        parsed({**files, "actions/ship.yaml": ACTION.replace("ship.py", "lib/x.py")}).warnings == ()
    )


def test_hidden_files_define_nothing() -> None:
    assert parsed({**SHOP, "actions/._ship.yaml": "\x00"}).actions == parsed(SHOP).actions


words = st.sampled_from(
    ["ref", "shop.a", "label", "enabled", "parameters", "type", "string", "grants", "conditions", "1", "true", "null",
     "runner_type", "entry_point", "config", "worker_affinity", "required", "tags", "version", "1.0.0", "-1",
     "action_ref", "pack_ref", "scope", "concurrency", "limit", "method", "enqueue", "quotas", "priority",
     "retry", "limits", "on", "delay", "memory_mb", "failed", "matching", "required_worker_runtimes"]
)  # fmt: skip
documents = st.recursive(
    words | st.integers() | st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from([*SHOP, "permission_sets/p.yaml", "runtimes/r.yaml", "policies/p.yaml"]),
        documents,
    )
)
def test_any_documents_are_a_pack_or_refused(found: dict[str, Any]) -> None:
    texts = {"pack.yaml": HEAD.encode()} | {
        path: json.dumps(v).encode() for path, v in found.items()
    }
    try:
        parse_pack(texts, frozenset(texts))
    except InvalidInput as refusal:
        assert refusal.fields["faults"]
