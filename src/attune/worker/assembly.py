"""From a hand-off and its definition to something that can be run. Pure but for the paths it joins."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from attune.catalog.model import ActionDefinition
from attune.catalog.retrying import Limits
from attune.catalog.runners import NATIVE
from attune.kernel.ids import ActionDefinitionId
from attune.pipeline.scheduling.compatibility import runtime_name
from attune.pipeline.scheduling.hand_off import HandOff
from attune.worker.detection import Found
from attune.worker.errors import CannotRun
from attune.worker.model import (
    Action,
    Delivery,
    OutputFormat,
    ParameterFormat,
    Result,
    Run,
    Runtime,
)

RUNTIMES: Final = MappingProxyType(
    {
        "core.native": Runtime.NATIVE,
        "core.shell": Runtime.SHELL,
        "core.python": Runtime.PYTHON,
        "core.nodejs": Runtime.NODE,
    }
)
_ACTIONS_KEPT: Final = 10_000
_ESCAPE: Final = re.compile(rb"\\(?:u0000|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of a worker, and the programs that it has found, by runtime. `packs` is the root below which definitions
    name their pack's folder."""

    packs: Path
    work: Path
    artifacts: Path
    programs: Mapping[str, Found] = field(default_factory=dict)
    # What definitions come to here: they never change, and most executions share one.
    actions: dict[tuple[ActionDefinitionId, float | None], Action] = field(default_factory=dict)


def assembled(
    hand_off: HandOff,
    definition: ActionDefinition,
    places: Places,
    api_url: str | None,
    token_for: Callable[[HandOff], str | None],
) -> Run:
    """`CannotRun` for a definition that this worker has no means for."""
    return Run(
        execution_id=hand_off.execution,
        attempt=hand_off.attempt,
        action=_action(hand_off, definition, places),
        artifacts_dir=places.artifacts,
        work_dir=places.work,
        parameters=hand_off.config,
        env_vars=hand_off.env_vars or {},
        rule_ref=hand_off.rule_ref,
        trigger_ref=hand_off.trigger_ref,
        api_url=api_url,
        api_token=token_for(hand_off),
    )


def _action(hand_off: HandOff, definition: ActionDefinition, places: Places) -> Action:
    key = (hand_off.definition, hand_off.timeout_seconds)
    found = places.actions.get(key)
    if found is None:
        if len(places.actions) >= _ACTIONS_KEPT:
            places.actions.clear()
        found = places.actions[key] = _made(hand_off, definition, places)
    return found


def _made(hand_off: HandOff, definition: ActionDefinition, places: Places) -> Action:
    if definition.runtime_ref is None:
        raise CannotRun("The action has no runtime, so nothing can run it.")
    return Action(
        ref=definition.action_ref,
        pack_ref=definition.pack_ref,
        runtime=RUNTIMES.get(definition.runtime_ref, Runtime.OTHER),
        interpreter=_interpreter(definition, definition.runtime_ref, places.programs),
        entrypoint=definition.entrypoint,
        inline=definition.is_inline,
        pack_dir=places.packs / definition.pack_dir if definition.pack_dir else None,
        parameter_delivery=Delivery(definition.parameter_delivery),
        parameter_format=ParameterFormat(definition.parameter_format),
        output_format=OutputFormat(definition.output_format),
        timeout_seconds=hand_off.timeout_seconds,
        limits=definition.limits or Limits(),
        reuse=definition.reuse,
    )


class _Interpreter(msgspec.Struct, frozen=True):
    binary: str
    args: tuple[str, ...] = ()


class _Execution(msgspec.Struct, frozen=True):
    """What of a runtime's `execution_config` says how its actions are started."""

    interpreter: _Interpreter | None = None


def _interpreter(
    definition: ActionDefinition, runtime_ref: str, programs: Mapping[str, Found]
) -> tuple[str, ...]:
    """The start of the command line; empty for the usual one of a runtime that we know ourselves."""
    constraint = definition.runtime_version_constraint
    known = runtime_ref in RUNTIMES
    if runtime_ref == NATIVE or (known and constraint is None):
        return ()
    declared = _declared_interpreter(definition)
    found = programs.get(runtime_name(runtime_ref))
    program = found.program(constraint) if found else None
    if program is None and constraint is not None:
        raise CannotRun(f"This worker has no {runtime_ref} in a version that fits {constraint!r}.")
    if declared is None:
        raise CannotRun(f"The runtime {runtime_ref} names no interpreter, so nothing can run it.")
    return (program or declared.binary, *declared.args)


def _declared_interpreter(definition: ActionDefinition) -> _Interpreter | None:
    try:
        return msgspec.convert(definition.execution_config, _Execution).interpreter
    except msgspec.ValidationError:
        return None


def encoded(result: Result | dict[str, Any]) -> bytes:
    """A result as it is stored. A NUL, which PostgreSQL's JSON cannot hold, becomes U+FFFD."""
    text = msgspec.json.encode(result)
    if b"\\u0000" not in text:
        return text
    return _ESCAPE.sub(lambda m: b"\\ufffd" if m[0] == b"\\u0000" else m[0], text)
