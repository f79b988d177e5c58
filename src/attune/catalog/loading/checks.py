"""What can only be judged beside the rest of the catalog: refs into other packs, and parameters of rules."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attune.catalog.refs import unknown_ref
from attune.catalog.schemas import compile_schema
from attune.catalog.sources.faults import Findings
from attune.catalog.sources.model import PackSource, PolicySource, RuleSource
from attune.kernel.errors import InvalidInput

Schemas = Mapping[str, dict[str, Any] | None]


def check_links(
    pack: PackSource,
    runtimes: Collection[str],
    triggers: Collection[str],
    actions: Collection[str],
    packs: Collection[str],
) -> None:
    """`InvalidInput` names every ref that nothing would have once the pack is loaded."""
    findings = Findings()
    for action in pack.actions:
        if action.runtime_ref is not None and action.runtime_ref not in runtimes:
            text = unknown_ref(action.runtime_ref, runtimes, "runtime")
            findings.fault(action.file, "runner_type", text)
    for policy in pack.policies:
        known = {"action": actions, "pack": packs}.get(policy.scope_type, ())
        if policy.scope_ref is not None and policy.scope_ref not in known:
            text = unknown_ref(policy.scope_ref, known, policy.scope_type)
            findings.fault(policy.file, f"{policy.scope_type}_ref", text)
    for rule in pack.rules:
        if rule.trigger_ref not in triggers:
            text = unknown_ref(rule.trigger_ref, triggers, "trigger")
            findings.fault(rule.file, "trigger_ref", text)
        if rule.action_ref not in actions:
            findings.fault(rule.file, "action_ref", unknown_ref(rule.action_ref, actions, "action"))
    findings.refuse_faults()


def parameter_warnings(
    rules: Collection[RuleSource], triggers: Schemas, actions: Schemas
) -> Iterator[str]:
    """Only warnings: the schema may be another pack's, which can change at any time."""
    for rule in rules:
        for field, parameters, schema in (
            ("trigger_params", rule.trigger_params, triggers.get(rule.trigger_ref)),
            ("action_params", rule.action_params, actions.get(rule.action_ref)),
        ):
            try:
                compile_schema(schema).check(parameters, templates=True, field=field)
            except InvalidInput as error:
                yield f"{rule.file}: {error.message}"


def shadow_warnings(
    policies: Collection[PolicySource], shadowed: Mapping[str, str]
) -> Iterator[str]:
    """Whoever writes a policy wants it to count. `shadowed` has the one in effect for each that does not."""
    for policy in policies:
        if first := shadowed.get(policy.ref):
            over = "everything" if policy.scope_type == "global" else policy.scope_ref
            yield f"{policy.file}: has no effect: '{first}', also over {over}, goes before it"
