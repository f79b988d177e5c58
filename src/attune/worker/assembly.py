"""From a hand-off and its definition to something that can be run. Pure but for the paths it joins."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from attune.catalog.model import ActionDefinition
from attune.catalog.retrying import Limits
from attune.worker.errors import CannotRun
from attune.worker.handoffs import HandOff
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
_ESCAPE: Final = re.compile(rb"\\(?:u0000|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of a worker. `packs` is the root below which definitions name their pack's folder."""

    packs: Path
    work: Path
    artifacts: Path


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
    runtime = RUNTIMES.get(definition.runtime_ref or "")
    if runtime is None:
        named = f"the runtime {definition.runtime_ref}" if definition.runtime_ref else "no runtime"
        raise CannotRun(f"The action has {named}, which this worker cannot run.")
    return Action(
        ref=definition.action_ref,
        pack_ref=definition.pack_ref,
        runtime=runtime,
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


def encoded(result: Result | dict[str, Any]) -> bytes:
    """A result as it is stored. A NUL, which PostgreSQL's JSON cannot hold, becomes U+FFFD."""
    text = msgspec.json.encode(result)
    if b"\\u0000" not in text:
        return text
    return _ESCAPE.sub(lambda m: b"\\ufffd" if m[0] == b"\\u0000" else m[0], text)
