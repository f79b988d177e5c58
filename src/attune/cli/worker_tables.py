"""Workers, what they have to do and what became of them, in tables and words."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from attune.cli.rendering import Column, duration, relative
from attune.client.worker_models import (
    Worker,
    WorkerExecution,
    WorkerHistoryEntry,
    WorkerLoad,
    WorkerRuntime,
    WorkerSetAside,
)

_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)


def runtime_words(runtimes: list[WorkerRuntime]) -> str:
    return ", ".join(" ".join([each.name, "/".join(each.versions)]).strip() for each in runtimes)


def label_words(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def taint_words(taints: list[dict[str, Any]]) -> str:
    """As `key=value:effect`."""
    return ", ".join(_taint(each) for each in taints)


def load_words(load: WorkerLoad) -> str:
    """What it has to do, as it stands after "it has"."""
    if not load.total_active:
        return "nothing to do"
    things = "execution" if load.total_active == 1 else "executions"
    return f"{load.total_active} {things} ({_by_status(load)})"


def heartbeat_age(worker: Worker) -> str | datetime | None:
    """By the server's clock where it tells: ours may differ."""
    if worker.heartbeat_age_seconds is None:
        return worker.last_heartbeat
    return relative(_ANY_MOMENT, _ANY_MOMENT + timedelta(seconds=worker.heartbeat_age_seconds))


def health_address(worker: Worker) -> str | None:
    if worker.port is None:
        return None
    host = worker.host or "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{worker.port}/health"


def worker_fields(worker: Worker) -> list[tuple[str, object]]:
    return [
        ("Worker", worker.name),
        ("Id", worker.id),
        ("Type", worker.worker_type),
        ("Role", worker.worker_role),
        ("State", worker.health_state),
        ("Status", worker.status),
        ("Load", _load(worker.load)),
        ("Has", load_words(worker.load)),
        ("Runtimes", runtime_words(worker.supported_runtimes) or None),
        ("Labels", label_words(worker.labels) or None),
        ("Taints", taint_words(worker.taints) or None),
        ("Health", health_address(worker)),
        ("Heartbeat", heartbeat_age(worker)),
        ("Answered a probe", worker.answered_at),
        ("Owes an answer since", worker.asked_at),
        ("Cordoned", worker.cordoned_at),
        ("Cordoned by", worker.cordoned_by_login or worker.cordoned_by),
        ("Cordoned because", worker.cordon_reason),
        ("First came", worker.created),
        ("Updated", worker.updated),
    ]


def _load(load: WorkerLoad) -> str:
    most = load.max_concurrent_executions
    return f"{load.total_active}" if most is None else f"{load.total_active}/{most}"


def _by_status(load: WorkerLoad) -> str:
    parts = {
        "running": load.running,
        "not begun": load.requested + load.scheduling + load.scheduled,
        "being cancelled": load.canceling,
    }
    return ", ".join(f"{count} {words}" for words, count in parts.items() if count)


def _taint(taint: Mapping[str, Any]) -> str:
    value = taint.get("value")
    named = f"{taint.get('key')}" if value is None else f"{taint.get('key')}={value}"
    return f"{named}:{taint['effect']}" if taint.get("effect") else named


def _silence(entry: WorkerHistoryEntry) -> str | None:
    return None if entry.downtime_seconds is None else duration(entry.downtime_seconds)


WORKER_COLUMNS: Final[list[Column[Worker]]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("NAME", lambda each: each.name),
    Column("TYPE", lambda each: each.worker_type),
    Column("STATE", lambda each: each.health_state or each.status),
    Column("LOAD", lambda each: _load(each.load), right=True),
    Column("RUNTIMES", lambda each: runtime_words(each.supported_runtimes)),
    Column("HEARTBEAT", heartbeat_age),
    Column("LABELS", lambda each: label_words(each.labels)),
]
EXECUTION_COLUMNS: Final[list[Column[WorkerExecution]]] = [
    Column("EXECUTION", lambda each: each.id, right=True),
    Column("ACTION", lambda each: each.action_ref),
    Column("STATUS", lambda each: each.status),
    Column("ATTEMPT", lambda each: each.attempt, right=True),
    Column("SINCE", lambda each: each.since),
]
SET_ASIDE_COLUMNS: Final[list[Column[WorkerSetAside]]] = [
    Column("ACTION", lambda each: each.action_ref),
    Column("FAILURES", lambda each: each.failures, right=True),
    Column("UNTIL", lambda each: each.until),
    Column("LAST ERROR", lambda each: each.error),
]
HISTORY_COLUMNS: Final[list[Column[WorkerHistoryEntry]]] = [
    Column("EVENT", lambda each: each.event),
    Column("AT", lambda each: each.at),
    Column("SILENT FOR", _silence, right=True),
    Column("EXECUTION", lambda each: each.execution, right=True),
    Column("TEXT", lambda each: each.text),
]
