"""What a rule costs per event: a condition, and the templates of its parameters, beside compiled Jinja."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from attune.expressions.conditions import compile_condition
from attune.expressions.templates import compile_template
from bench.measure import Case, Work

SOURCE = "event.payload.severity == 'high' and event.payload.count > 3"
CRITERIA = [
    {"field": "event.payload.severity", "operator": "equals", "value": "high"},
    {"field": "event.payload.count", "operator": "greaterthan", "value": 3},
]
PARAMETERS = {
    "message": "{{ event.payload.host }}: {{ event.payload.count }} alarms",
    "count": "{{ event.payload.count }}",
    "severity": "{{ event.payload.severity }}",
}
SCOPE = {
    "event": {
        "id": 7,
        "trigger": "core.webhook",
        "payload": {"severity": "high", "count": 5, "host": "db-1", "tags": ["a", "b"]},
    }
}


class _NativeSandbox(SandboxedEnvironment, NativeEnvironment):
    """The nearest that Jinja has to offer: values keep their types, and attributes are guarded."""


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case]]:
    count = 2_000 if quick else 20_000
    jinja = _NativeSandbox()
    peer = jinja.compile_expression(SOURCE)
    peers = {name: jinja.from_string(source) for name, source in PARAMETERS.items()}
    expression = compile_condition({"expression": SOURCE})
    criteria = compile_condition(CRITERIA)
    template = compile_template(PARAMETERS)
    assert expression.check(SCOPE).matched
    assert criteria.check(SCOPE).matched
    assert peer(**SCOPE)
    condition, document = "jinja: a condition", "jinja: three templates"
    yield [
        Case(condition, _repeat(count, lambda: peer(**SCOPE))),
        Case("expression", _repeat(count, lambda: expression.check(SCOPE)), beside=condition),
        Case("criteria", _repeat(count, lambda: criteria.check(SCOPE)), beside=condition),
        Case(document, _repeat(count, lambda: {k: peers[k].render(**SCOPE) for k in peers})),
        Case("three templates", _repeat(count, lambda: template.render(SCOPE)), beside=document),
    ]


def _repeat(count: int, once: Callable[[], object]) -> Work:
    async def work() -> int:
        for _ in range(count):
            once()
        return count

    return work
