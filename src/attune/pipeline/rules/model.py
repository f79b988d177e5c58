"""A rule, compiled."""

from dataclasses import dataclass
from typing import Any

from attune.catalog.model import Rule
from attune.expressions.conditions import Condition
from attune.expressions.templates import Template


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """`fault` tells why the rule cannot be used; the others are there where it is null."""

    rule: Rule
    pack_config: dict[str, Any]
    condition: Condition | None = None
    template: Template | None = None
    fault: str | None = None
    trigger_enabled: bool = True
