"""What became of a worker, or of an execution on it, as an alert: which of it, in which words. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from attune.pipeline.alerts.model import Alert, Incident, Keyed, Severity
from attune.pipeline.events.model import OWN_KEYS
from attune.pipeline.workers.history import WorkerEvent

_E = WorkerEvent


class _Kind(msgspec.Struct, frozen=True):
    """`text` is worded with `{worker}`, `{execution}` and `{text}`, what the history says."""

    severity: Severity
    failure_type: str
    text: str
    of_execution: bool = False


_KINDS: Final[Mapping[WorkerEvent, _Kind]] = {
    _E.LOST: _Kind(Severity.ERROR, "worker_lost", "{worker} is lost: {text}"),
    _E.UNRESPONSIVE: _Kind(
        Severity.WARNING, "worker_unresponsive", "{worker} does not answer: {text}"
    ),
    _E.SET_ASIDE: _Kind(
        Severity.WARNING, "worker_set_aside", "{worker} keeps failing an action: {text}"
    ),
    _E.ABANDONED: _Kind(
        Severity.ERROR,
        "worker_unavailable",
        "{execution} was abandoned: {text}",
        of_execution=True,
    ),
    _E.NOT_STARTED: _Kind(
        Severity.WARNING,
        "execution_not_started",
        "{worker} did not begin {execution}: {text}",
        of_execution=True,
    ),
    _E.OVERDUE: _Kind(
        Severity.WARNING,
        "execution_overdue",
        "{worker} did not end {execution} in time: {text}",
        of_execution=True,
    ),
}
TOLD: Final = tuple(_KINDS)


def alert_of(incident: Incident) -> Keyed:
    """`incident` is one of `TOLD`."""
    kind = _KINDS[incident.event]
    of_execution = kind.of_execution and incident.execution is not None
    key = _key_of(incident)
    alert = Alert(
        severity=kind.severity,
        category="execution" if of_execution else "worker",
        failure_type=kind.failure_type,
        component_type="execution" if of_execution else "worker",
        component_id=incident.execution if of_execution else incident.worker,
        component_ref=incident.action_ref if of_execution else incident.worker_name,
        worker_role=incident.worker_role,
        observed_at=incident.at,
        summary=_summary(kind, incident),
        details=_details(incident),
        correlation_id=key,
    )
    return Keyed(OWN_KEYS + key, alert)


def moment(at: datetime) -> str:
    """As it stands in keys, always in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _key_of(incident: Incident) -> str:
    """An execution is abandoned once. A worker may be set aside for two actions at the same moment."""
    word, at = incident.event.value, moment(incident.at)
    match incident.event:
        case WorkerEvent.ABANDONED:
            return f"execution:{incident.execution}:worker_unavailable"
        case WorkerEvent.NOT_STARTED | WorkerEvent.OVERDUE:
            return f"execution:{incident.execution}:{word}:{at}"
        case WorkerEvent.SET_ASIDE:
            return f"worker:{incident.worker}:{word}:{incident.id}"
        case _:
            return f"worker:{incident.worker}:{word}:{at}"


def _summary(kind: _Kind, incident: Incident) -> str:
    silence = incident.downtime_seconds
    told = incident.text or (
        "no reason is known" if silence is None else f"silent for {silence:.0f} s"
    )
    action = f" of {incident.action_ref}" if incident.action_ref else ""
    text = kind.text.format(
        worker=f"worker {incident.worker_name or incident.worker}",
        execution=f"execution {incident.execution}{action}",
        text=told.removesuffix("."),
    )
    return f"{text[0].upper()}{text[1:]}."


def _details(incident: Incident) -> dict[str, Any]:
    """What is not known is left out, but for the worker."""
    known = {
        "execution_id": incident.execution,
        "action_ref": incident.action_ref,
        "rule_ref": incident.rule_ref,
        "downtime_seconds": incident.downtime_seconds,
        "reason": incident.text,
    }
    worker = {"id": incident.worker, "name": incident.worker_name}
    return {"worker": worker, **{name: v for name, v in known.items() if v is not None}}
