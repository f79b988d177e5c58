"""What is told to people, in which words, and when a condition begins and ends."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.alerts.decide import after, alerts_of
from attune.pipeline.alerts.incidents import TOLD, alert_of
from attune.pipeline.alerts.model import (
    ConditionName,
    Episode,
    Episodes,
    Incident,
    Readings,
    Severity,
)
from attune.pipeline.workers.history import WorkerEvent

N = ConditionName
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
WELL = Readings(active_workers=1, had_workers=True, dead_letters=0, stale_executions=0, timeouts=0)


def incident(event: str, **fields: Any) -> Incident:
    known: dict[str, Any] = {
        "id": 7,
        "worker": WorkerId(3),
        "event": WorkerEvent(event),
        "at": NOW,
        "execution": None,
        "downtime_seconds": None,
        "text": None,
        "worker_name": "w3",
        "worker_role": "action",
        "action_ref": None,
        "rule_ref": None,
    }
    return Incident(**{**known, **fields})


def seen(**fields: Any) -> Readings:
    return msgspec.structs.replace(WELL, **fields)


class TestIncidents:
    def test_an_abandoned_execution_is_told_under_the_id_that_clients_know(self) -> None:
        told = alert_of(
            incident(
                "abandoned",
                execution=ExecutionId(5),
                action_ref="core.echo",
                rule_ref="shop.on_order",
                text="The worker w3 was lost while the execution was running.",
            )
        )
        alert = told.alert
        assert alert.correlation_id == "execution:5:worker_unavailable"
        assert told.key == f"attune:{alert.correlation_id}"
        assert (alert.severity, alert.failure_type) == (Severity.ERROR, "worker_unavailable")
        assert (alert.category, alert.component_type) == ("execution", "execution")
        assert (alert.component_id, alert.component_ref) == (5, "core.echo")
        assert (alert.worker_role, alert.observed_at) == ("action", NOW)
        assert alert.summary == (
            "Execution 5 of core.echo was abandoned:"
            " The worker w3 was lost while the execution was running."
        )
        assert alert.details == {
            "worker": {"id": 3, "name": "w3"},
            "execution_id": 5,
            "action_ref": "core.echo",
            "rule_ref": "shop.on_order",
            "reason": "The worker w3 was lost while the execution was running.",
        }

    @pytest.mark.parametrize(
        ("event", "fields", "key", "severity", "summary"),
        [
            (
                "lost",
                {"downtime_seconds": 31.2},
                "worker:3:lost:2030-01-01T12:00:00.000000Z",
                "error",
                "Worker w3 is lost: silent for 31 s.",
            ),
            (
                "unresponsive",
                {"text": "no answer"},
                "worker:3:unresponsive:2030-01-01T12:00:00.000000Z",
                "warning",
                "Worker w3 does not answer: no answer.",
            ),
            (
                "set_aside",
                {"text": "a.b failed 5 times in a row", "execution": ExecutionId(9)},
                "worker:3:set_aside:7",
                "warning",
                "Worker w3 keeps failing an action: a.b failed 5 times in a row.",
            ),
            (
                "not_started",
                {"text": "late", "execution": ExecutionId(9), "action_ref": "a.b"},
                "execution:9:not_started:2030-01-01T12:00:00.000000Z",
                "warning",
                "Worker w3 did not begin execution 9 of a.b: late.",
            ),
            (
                "overdue",
                {"text": "late", "execution": ExecutionId(9), "worker_name": None},
                "execution:9:overdue:2030-01-01T12:00:00.000000Z",
                "warning",
                "Worker 3 did not end execution 9 in time: late.",
            ),
        ],
    )
    def test_each_has_its_key_its_severity_and_a_sentence(
        self, event: str, fields: dict[str, Any], key: str, severity: str, summary: str
    ) -> None:
        told = alert_of(incident(event, **fields))
        found = (told.key.removeprefix("attune:"), told.alert.severity, told.alert.summary)
        assert found == (key, Severity(severity), summary)
        assert told.alert.correlation_id == key

    def test_a_worker_that_is_set_aside_is_what_the_alert_is_about_not_the_last_execution(
        self,
    ) -> None:
        alert = alert_of(incident("set_aside", execution=ExecutionId(9))).alert
        assert (alert.component_type, alert.component_id, alert.component_ref) == (
            "worker",
            3,
            "w3",
        )
        assert alert.details["execution_id"] == 9

    def test_coming_and_going_as_it_should_is_no_alert(self) -> None:
        quiet = {
            "registered",
            "stopped",
            "back",
            "responsive",
            "cordoned",
            "uncordoned",
            "taken_up",
        }
        assert {event.value for event in WorkerEvent} - {event.value for event in TOLD} == quiet


class TestConditions:
    @pytest.mark.parametrize(
        ("name", "field", "well", "ill"),
        [
            (N.HIGH_EXECUTION_TIMEOUT_RATE, "timeouts", 10, 11),
            (N.NO_ACTIVE_WORKERS, "active_workers", 1, 0),
            (N.DLQ_BUILDUP, "dead_letters", 100, 101),
            (N.STALE_EXECUTIONS, "stale_executions", 0, 1),
        ],
    )
    def test_each_begins_behind_its_limit_and_ends_at_it(
        self, name: ConditionName, field: str, well: int, ill: int
    ) -> None:
        assert after({}, seen(**{field: well}), NOW) == {}
        began = after({}, seen(**{field: ill}), NOW)
        assert began == {name: Episode(since=NOW, value=ill)}
        ended = after(began, seen(**{field: well}), LATER)
        assert ended == {
            name: Episode(since=NOW, value=ill, until=LATER, last_value=well, told=False)
        }

    def test_what_holds_on_is_left_alone_whatever_the_number(self) -> None:
        held = {N.DLQ_BUILDUP: Episode(since=NOW, value=101, told=True)}
        assert after(held, seen(dead_letters=5000), LATER) == held

    def test_the_next_one_begins_only_after_the_end_of_the_last_was_told(self) -> None:
        over = Episode(since=NOW, value=101, until=NOW, last_value=3)
        ill = seen(dead_letters=200)
        assert after({N.DLQ_BUILDUP: over}, ill, LATER) == {N.DLQ_BUILDUP: over}
        told: Episodes = {N.DLQ_BUILDUP: msgspec.structs.replace(over, told=True)}
        assert after(told, ill, LATER) == {N.DLQ_BUILDUP: Episode(since=LATER, value=200)}

    def test_an_installation_that_never_had_a_worker_misses_none(self) -> None:
        assert after({}, seen(active_workers=0, had_workers=False), NOW) == {}

    def test_missing_workers_are_still_missed_when_their_rows_are_gone(self) -> None:
        held = {N.NO_ACTIVE_WORKERS: Episode(since=NOW, value=0, told=True)}
        assert after(held, seen(active_workers=0, had_workers=False), LATER) == held

    def test_a_condition_is_told_once_for_its_beginning_and_once_for_its_end(self) -> None:
        episode = Episode(since=NOW, value=0)
        key = "installation:no_active_workers:2030-01-01T12:00:00.000000Z"
        [began] = alerts_of(N.NO_ACTIVE_WORKERS, episode)
        assert (began.key, began.alert.correlation_id) == (f"attune:{key}", key)
        assert began.alert.severity is Severity.CRITICAL
        assert began.alert.failure_type == "no_active_workers"
        assert began.alert.details == {"resolved": False, "value": 0, "limit": None}

        over = msgspec.structs.replace(episode, until=LATER, last_value=2)
        [again, ended] = alerts_of(N.NO_ACTIVE_WORKERS, over)
        assert again == began
        assert (ended.key, ended.alert.correlation_id) == (f"attune:{key}:resolved", key)
        assert (ended.alert.severity, ended.alert.observed_at) == (Severity.INFO, LATER)
        assert ended.alert.summary == "Resolved: There is an active worker again."
        assert ended.alert.details == {
            "resolved": True,
            "value": 2,
            "limit": None,
            "since": "2030-01-01T12:00:00.000000Z",
            "lasted_seconds": 60,
        }
