"""actions/*.yaml"""

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from attune.catalog.refs import label_from, member_ref_fault, pack_part, shown, unknown_word
from attune.catalog.retry_rules import limits_faults, limits_of, retry_faults, retry_of
from attune.catalog.runners import (
    DELIVERIES,
    NATIVE,
    ON_WORKER_LOST,
    OUTPUT_FORMATS,
    PARAMETER_FORMATS,
    RUNNER_WORDS,
)
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import ActionSource
from attune.catalog.version_constraints import constraint_fault


def read_action(
    fields: Fields, pack_ref: str, runners: Mapping[str, str], paths: Collection[str]
) -> ActionSource:
    """`runners` has the words for the pack's own runtimes; `paths` are all of the pack's files."""
    name = fields.text("name")
    ref = fields.text("ref") or (f"{pack_ref}.{name}" if name else fields.required_text("ref"))
    runtime_ref = _runtime_ref(fields, runners)
    found = ActionSource(
        file=fields.file,
        ref=fields.member_ref(pack_ref, ref),
        label=fields.text("label") or label_from(name or ref),
        description=fields.optional_text("description"),
        enabled=fields.boolean("enabled", default=True),
        entrypoint=_entrypoint(fields, runtime_ref, paths),
        runtime_ref=runtime_ref,
        runtime_version_constraint=fields.version_constraint("runtime_version"),
        required_worker_runtimes=_required_runtimes(fields),
        param_schema=fields.schema("parameters"),
        out_schema=fields.schema("output", "output_schema"),
        parameter_delivery=fields.choice("parameter_delivery", DELIVERIES, "stdin"),
        parameter_format=fields.choice("parameter_format", PARAMETER_FORMATS, "json"),
        output_format=fields.choice("output_format", OUTPUT_FORMATS, "text"),
        timeout_seconds=fields.integer("timeout", least=1),
        max_retries=fields.integer("max_retries", least=0, default=0) or 0,
        on_worker_lost=fields.choice("on_worker_lost", ON_WORKER_LOST, "retry"),
        retry=retry_of(fields.sound("retry", retry_faults)),
        limits=limits_of(fields.sound("limits", limits_faults)),
        reuse=fields.boolean("reuse", default=False),
        worker_selector=fields.placement("worker_selector", {}),
        worker_tolerations=fields.placement("worker_tolerations", []),
        worker_affinity=fields.placement("worker_affinity", {}),
        default_execution_permission_set_refs=fields.texts("default_execution_permission_set_refs"),
        accesses_mcp=fields.boolean("accesses_mcp", default=False),
        tags=fields.texts("tags"),
    )
    fields.finish()
    return found


def _runtime_ref(fields: Fields, own: Mapping[str, str]) -> str | None:
    """A word, or the full ref of a runtime, which must be there when the pack is loaded."""
    written = fields.optional_text("runner_type")
    if written is None:
        return None
    known = {**RUNNER_WORDS, **own}
    word = written.lower()
    if word in known:
        return known[word]
    if member_ref_fault(word, pack_part(word)) is None:
        return word
    fields.fault("runner_type", unknown_word(word, known))
    return None


def _required_runtimes(fields: Fields) -> dict[str, str]:
    empty: dict[str, str] = {}
    written = fields.placement("required_worker_runtimes", empty)
    for name, constraint in written.items():
        if rule := constraint_fault(constraint):
            fields.fault(f"required_worker_runtimes.{name[:80]}", rule)
    return written


def _entrypoint(fields: Fields, runtime_ref: str | None, paths: Collection[str]) -> str:
    workflow = fields.optional_text("workflow_file")
    if workflow is not None:
        fields.warn("workflow_file", "workflows are not yet supported; the action cannot run")
        fields.raw("entry_point")
        _check_inside(fields, "workflow_file", workflow)
        return workflow
    entrypoint = fields.required_text("entry_point")
    if not entrypoint:
        return ""
    places = _check_inside(fields, "entry_point", entrypoint)
    if places and runtime_ref != NATIVE and not any(place in paths for place in places):
        fields.warn("entry_point", f"the pack has no file {shown(entrypoint)}")
    return entrypoint


def _check_inside(fields: Fields, name: str, written: str) -> list[str]:
    """The files that it may mean: below `actions/`, or below the pack's root. None may be outside the pack."""
    places = [place for base in ("actions", "") if (place := _joined(base, written)) is not None]
    if not places:
        fields.fault(name, f"{shown(written)} is not inside the pack")
    return places


def _joined(base: str, written: str) -> str | None:
    """The path below the pack's root, or None where `..` or `/` leads out of it."""
    path = PurePosixPath(written)
    if path.is_absolute() or "\x00" in written or "\\" in written:
        return None
    steps = [base] if base else []
    for step in path.parts:
        if step != "..":
            steps.append(step)
        elif steps:
            steps.pop()
        else:
            return None
    return "/".join(steps) or None
