"""What happens: events, enforcements, executions, the queues they wait in and the workers that run them.

Hot and cold are apart. `event`, `enforcement` and `execution` are history: they outlive what they name, so
they have no foreign keys. `lane`, `entry` and `worker` are small and change all the time; an entry is there
for as long as its execution has not ended, and is the slot that it holds.
"""

from typing import Any

import sqlalchemy as sa

from attune.store.schema.base import Id, JsonText, Moment, metadata, table

event = table(
    "event",
    sa.Column("trigger", Id),
    sa.Column("trigger_ref", sa.Text, nullable=False),
    sa.Column("source", Id),
    sa.Column("source_ref", sa.Text),
    # The one rule that a firing is meant for; null for an event that every rule of its trigger may answer.
    sa.Column("rule", Id),
    sa.Column("rule_ref", sa.Text),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("processed_at", Moment),
    sa.Column("config", JsonText),
    # Which rules were considered, and why each did or did not match: [{rule_ref, matched, reason}].
    sa.Column("rules", JsonText),
    sa.Column("payload", JsonText, nullable=False),
)

# Others may write one and announce it with enforcement.created; it needs a rule, its ref and the trigger's.
enforcement = table(
    "enforcement",
    sa.Column("rule", Id),
    sa.Column("rule_ref", sa.Text, nullable=False),
    sa.Column("event", Id),
    sa.Column("trigger_ref", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default="created"),
    sa.Column("reason", sa.Text),
    sa.Column("warnings", JsonText),
    sa.Column("resolved_at", Moment),
    sa.Column("condition", sa.Text, nullable=False, server_default="all"),
    sa.Column("conditions", JsonText, nullable=False, server_default="{}"),
    sa.Column("config", JsonText),
    # Null where it is the event's own.
    sa.Column("payload", JsonText),
    sa.UniqueConstraint("event", "rule"),
    written_by_others=True,
)

execution = table(
    "execution",
    sa.Column("action", Id),
    sa.Column("action_ref", sa.Text, nullable=False),
    sa.Column("definition", Id, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    # The last word again if it is not `completed`. It is indexed and `status` is not: on PostgreSQL an
    # execution that goes well then changes no index from its insertion to its end.
    sa.Column("failure", sa.Text),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("priority", sa.SmallInteger, nullable=False),
    sa.Column("parent", Id),
    sa.Column("original_execution", Id),
    sa.Column("enforcement", Id),
    sa.Column("rule_ref", sa.Text),
    sa.Column("trigger_ref", sa.Text),
    sa.Column("executor", Id),
    sa.Column("worker", Id),
    sa.Column("started_at", Moment),
    sa.Column("timeout_seconds", sa.Float),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("trace_tag", sa.Text),
    sa.Column("permission_set_refs", JsonText),
    sa.Column("worker_selector", JsonText),
    sa.Column("worker_tolerations", JsonText),
    sa.Column("worker_affinity", JsonText),
    sa.Column("workflow_task", JsonText),
    # How often and after which delays a failed attempt is followed by another; null where it is the last.
    sa.Column("retry", JsonText),
    sa.Column("env_vars", JsonText),
    sa.Column("config", JsonText, nullable=False),
    sa.Column("result", JsonText),
    # Each row is written twice more, and its result makes it longer: where a page has room for that, no index changes.
    postgresql_with={"fillfactor": 50},
)

# A queue: one for each action, or for each action and group. Its counters change under its lock only.
lane = table(
    "lane",
    sa.Column("action_ref", sa.Text, nullable=False),
    # JSON of the values that the group stands for; empty for an action's only lane.
    sa.Column("group_key", sa.Text, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    sa.Column("next_sequence", sa.BigInteger, nullable=False),
    sa.Column("queue_length", sa.Integer, nullable=False),
    sa.Column("active_count", sa.Integer, nullable=False),
    sa.Column("total_enqueued", sa.BigInteger, nullable=False),
    sa.Column("total_completed", sa.BigInteger, nullable=False),
    sa.Column("last_enqueued_at", Moment, nullable=False),
    # The policy that binds it, as it was when the lane was last arranged; the stamp tells whether it still is.
    sa.Column("policy", Id),
    sa.Column("terms", JsonText),
    sa.Column("stamp", sa.Text, nullable=False, server_default=""),
    sa.Column("arranged", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("max_concurrent", sa.Integer),
    # The pools that it shares with other lanes; null for a lane whose gates concern nobody else.
    sa.Column("pools", JsonText),
    # What its head waits for, and when a gate of time will open.
    sa.Column("reason", sa.Text),
    sa.Column("retry_at", Moment),
    sa.Column("next_decision", sa.BigInteger, nullable=False, server_default="1"),
    sa.UniqueConstraint("action_ref", "group_key"),
    postgresql_with={"fillfactor": 50},
)

# What several lanes share under one policy: a limit over a pack, a quota of one identity. Locked before its lanes.
pool = table(
    "pool",
    sa.Column("policy", Id, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("active_count", sa.Integer, nullable=False),
    sa.Column("total_accepted", sa.BigInteger, nullable=False),
    sa.Column("next_decision", sa.BigInteger, nullable=False, server_default="1"),
    sa.UniqueConstraint("policy", "key"),
    postgresql_with={"fillfactor": 50},
)

# A start under a rate limit. `at` is null from the admission until the start is known, and counts as now.
admission = sa.Table(
    "admission",
    metadata,
    sa.Column("execution", Id, primary_key=True, autoincrement=False),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("pool", Id, nullable=False),
    sa.Column("at", Moment),
)
sa.Index(None, admission.c.pool, admission.c.at)

# What a transaction decided in one lane, in its order; lane 0 is the whole system, and a number below it a pool.
# Numbers have no gaps.
decision = sa.Table(
    "decision",
    metadata,
    sa.Column("lane", Id, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("active_before", sa.Integer, nullable=False),
    sa.Column("active_after", sa.Integer, nullable=False),
    sa.Column("queue_length", sa.Integer, nullable=False),
    sa.Column("max_concurrent", sa.Integer),
    # What its head waits for afterwards.
    sa.Column("reason", sa.Text),
    sa.Column("items", JsonText, nullable=False),
)
sa.Index(None, decision.c.at)


def _attempt_columns() -> list[sa.Column[Any]]:
    """What an attempt that is still to come needs to know of those before it."""
    return [
        sa.Column("attempt", sa.Integer, nullable=False),
        # Attempts that failed and were followed by another, and those that were lost before anybody saw them run.
        sa.Column("retries", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("losses", sa.SmallInteger, nullable=False, server_default="0"),
        # Since when a later attempt may begin; null for the first.
        sa.Column("due_at", Moment),
        sa.Column("definition", Id, nullable=False),
        # What it asks of a worker: labels, tolerations, affinity, and whom it had before. Null for nothing.
        sa.Column("needs", JsonText),
    ]


entry = sa.Table(
    "entry",
    metadata,
    sa.Column("execution", Id, primary_key=True, autoincrement=False),
    sa.Column("lane", Id, nullable=False),
    sa.Column("band", sa.SmallInteger, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    # queued: waits for a slot. ready: has one, waits for a worker. handed: a worker has it.
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("enqueued_at", Moment, nullable=False),
    *_attempt_columns(),
    sa.Column("worker", Id),
    # Until when the worker may begin it.
    sa.Column("lease_expires_at", Moment),
    # Dead rows gather where every admission looks, so they go after a number of them, however many wait.
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0,
        "autovacuum_vacuum_threshold": 10000,
    },
)

# An execution between two attempts: it holds no slot and stands in no line until `due_at`. Its place in the lane
# that it left is kept, for when it comes back there.
delay = sa.Table(
    "delay",
    metadata,
    sa.Column("execution", Id, primary_key=True, autoincrement=False),
    sa.Column("lane", Id, nullable=False),
    sa.Column("band", sa.SmallInteger, nullable=False),
    # Null where it is to stand behind all others.
    sa.Column("sequence", sa.BigInteger),
    sa.Column("enqueued_at", Moment, nullable=False),
    *_attempt_columns(),
)

# An attempt that ended without ending its execution. The last one is the execution's own row.
execution_attempt = sa.Table(
    "execution_attempt",
    metadata,
    sa.Column("execution", Id, primary_key=True, autoincrement=False),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", Id),
    sa.Column("status", sa.Text, nullable=False),
    # failed, timeout, not_started, worker_lost
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("started_at", Moment),
    sa.Column("ended_at", Moment, nullable=False),
)

worker = table(
    "worker",
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("worker_type", sa.Text, nullable=False),
    sa.Column("worker_role", sa.Text, nullable=False),
    sa.Column("host", sa.Text),
    sa.Column("port", sa.Integer),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("capacity", sa.Integer, nullable=False),
    sa.Column("supported_runtimes", JsonText, nullable=False),
    sa.Column("labels", JsonText, nullable=False),
    sa.Column("taints", JsonText, nullable=False),
    # Changes with every registration: a process that finds another one here has been replaced.
    sa.Column("incarnation", sa.Text, nullable=False),
    sa.Column("last_heartbeat", Moment, nullable=False),
    # The first question that it has not answered, null if it owes no answer; and when it last answered one.
    sa.Column("asked_at", Moment),
    sa.Column("answered_at", Moment),
    sa.Column("cordoned", sa.Boolean, nullable=False),
    sa.Column("cordon_reason", sa.Text),
    sa.Column("cordoned_by", Id),
    sa.Column("cordoned_at", Moment),
    postgresql_with={"fillfactor": 50},
)

# What became of a worker, and what it did to executions: for people, for metrics and for alerts.
worker_history = sa.Table(
    "worker_history",
    metadata,
    sa.Column("id", Id, sa.Identity(), primary_key=True),
    sa.Column("worker", Id, nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("execution", Id),
    # How long it was not heard of, for `lost` and `back`.
    sa.Column("downtime_seconds", sa.Float),
    sa.Column("text", sa.Text),
    sqlite_autoincrement=True,
)
sa.Index(None, worker_history.c.worker, worker_history.c.id)
sa.Index(None, worker_history.c.event, worker_history.c.at)

# Failures of one action on one worker since it last succeeded there. With `until` the worker is set aside for it.
worker_setback = sa.Table(
    "worker_setback",
    metadata,
    sa.Column("worker", Id, primary_key=True, autoincrement=False),
    sa.Column("action_ref", sa.Text, primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("since", Moment, nullable=False),
    sa.Column("first_execution", Id, nullable=False),
    sa.Column("until", Moment),
    sa.Column("error", sa.Text),
)

# Output of what runs now, for those who follow it. It goes when the result, which holds all of it, is written.
execution_output = sa.Table(
    "execution_output",
    metadata,
    sa.Column("execution", Id, primary_key=True, autoincrement=False),
    sa.Column("stream", sa.Text, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    # Where the text begins, in bytes of its UTF-8 form.
    sa.Column("begins_at", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text, nullable=False),
)


def _partial(name: str, condition: sa.ColumnElement[bool], *columns: sa.Column[object]) -> None:
    sa.Index(name, *columns, postgresql_where=condition, sqlite_where=condition)


_partial("ix_event_unprocessed", event.c.processed_at.is_(None), event.c.id)
sa.Index(None, event.c.trigger_ref, event.c.id)
_partial("ix_event_rule_ref", event.c.rule_ref.is_not(None), event.c.rule_ref, event.c.id)
sa.Index(
    "uq_event_idempotency_key",
    event.c.idempotency_key,
    unique=True,
    postgresql_where=event.c.idempotency_key.is_not(None),
    sqlite_where=event.c.idempotency_key.is_not(None),
)

_partial("ix_enforcement_created", enforcement.c.status == "created", enforcement.c.id)
sa.Index(None, enforcement.c.rule_ref, enforcement.c.id)

_partial(
    "ix_execution_failure", execution.c.failure.is_not(None), execution.c.failure, execution.c.id
)
sa.Index(None, execution.c.action_ref, execution.c.id)
_partial(
    "ix_execution_enforcement",
    execution.c.enforcement.is_not(None),
    execution.c.enforcement,
    execution.c.id,
)
_partial("ix_execution_parent", execution.c.parent.is_not(None), execution.c.parent, execution.c.id)
_partial(
    "ix_execution_rule_ref", execution.c.rule_ref.is_not(None), execution.c.rule_ref, execution.c.id
)
_partial(
    "ix_execution_executor", execution.c.executor.is_not(None), execution.c.executor, execution.c.id
)
sa.Index(
    "uq_execution_idempotency_key",
    execution.c.idempotency_key,
    unique=True,
    postgresql_where=execution.c.idempotency_key.is_not(None),
    sqlite_where=execution.c.idempotency_key.is_not(None),
)

_partial("ix_entry_queued", entry.c.state == "queued", entry.c.lane, entry.c.band, entry.c.sequence)
_partial(
    "ix_entry_ready",
    entry.c.state == "ready",
    entry.c.band,
    entry.c.enqueued_at,
    entry.c.sequence,
    entry.c.execution,
)
_partial("ix_entry_handed", entry.c.state == "handed", entry.c.worker)
_partial("ix_entry_again", entry.c.attempt > 1, entry.c.state)
sa.Index(None, delay.c.due_at)
sa.Index(None, delay.c.lane)

_partial("ix_lane_policy", lane.c.policy.is_not(None), lane.c.policy)
_partial("ix_lane_retry_at", lane.c.retry_at.is_not(None), lane.c.retry_at)
