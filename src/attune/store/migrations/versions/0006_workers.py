"""Attempts after the first, what executions ask of workers, and what became of workers."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateColumn

from attune.store.schema import Id, JsonText, Moment

revision = "0006"
down_revision = "0005"

Columns = Mapping[str, Sequence[sa.Column[Any]]]

_SELECTORS = {
    "postgresql": """
        UPDATE entry SET needs = jsonb_build_object('selector', worker_selector)
         WHERE worker_selector IS NOT NULL
    """,
    "sqlite": """
        UPDATE entry SET needs = json_object('selector', json(worker_selector))
         WHERE worker_selector IS NOT NULL
    """,
}
# Executions under way have the retries that their action has.
_LIVING = """
 WHERE execution.id IN (SELECT e.execution FROM entry e)
   AND EXISTS (SELECT 1 FROM action a WHERE a.ref = execution.action_ref AND a.max_retries > 0)
"""
_RETRIES = {
    "postgresql": f"""
        UPDATE execution SET retry = (SELECT jsonb_build_object('max_retries', a.max_retries)
          FROM action a WHERE a.ref = execution.action_ref) {_LIVING}
    """,
    "sqlite": f"""
        UPDATE execution SET retry = (SELECT json_object('max_retries', a.max_retries)
          FROM action a WHERE a.ref = execution.action_ref) {_LIVING}
    """,
}


def upgrade() -> None:
    for table, columns in _new_columns().items():
        _widen(table, columns)
    op.execute(_SELECTORS[op.get_bind().dialect.name])
    op.execute(_RETRIES[op.get_bind().dialect.name])
    _drop("entry", "worker_selector")
    where = sa.text("attempt > 1")
    op.create_index(
        "ix_entry_again", "entry", ["state"], postgresql_where=where, sqlite_where=where
    )
    _create_delay()
    _create_execution_attempt()
    _create_worker_history()
    _create_worker_setback()


def downgrade() -> None:
    for name in ("worker_setback", "worker_history", "execution_attempt", "delay"):
        op.drop_table(name)
    op.drop_index("ix_entry_again", "entry")
    _widen("entry", {"definition": [sa.Column("worker_selector", JsonText)]})
    for table, columns in _new_columns().items():
        _drop(table, *(column.name for some in columns.values() for column in some))


def _new_columns() -> dict[str, Columns]:
    """By the column that each follows."""
    return {
        "action": {
            "on_worker_lost": [
                sa.Column("retry", JsonText),
                sa.Column("limits", JsonText),
                sa.Column("reuse", sa.Boolean, nullable=False, server_default=sa.false()),
            ]
        },
        "execution": {"workflow_task": [sa.Column("retry", JsonText)]},
        "entry": {
            "attempt": [*_counts(), sa.Column("due_at", Moment)],
            "definition": [sa.Column("needs", JsonText)],
        },
        "worker": {
            "last_heartbeat": [sa.Column("asked_at", Moment), sa.Column("answered_at", Moment)]
        },
        "dead_letter": {
            "replayed_at": [
                sa.Column("replayed_by", Id),
                sa.Column("replay_count", sa.Integer, nullable=False, server_default="0"),
            ]
        },
    }


def _counts() -> list[sa.Column[Any]]:
    return [
        sa.Column("retries", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("losses", sa.SmallInteger, nullable=False, server_default="0"),
    ]


def _widen(table: str, columns: Columns) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for column in (each for some in columns.values() for each in some):
            op.add_column(table, column)
        return
    _rebuild(table, columns)


def _drop(table: str, *names: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in names:
            op.drop_column(table, name)
        return
    _rebuild(table, {}, names)


def _rebuild(table: str, columns: Columns, dropped: Sequence[str] = ()) -> None:
    """SQLite adds a column behind the constraints only, so the table is made anew and filled from the old one."""
    connection = op.get_bind()
    parts = sa.text(
        "SELECT sql FROM sqlite_master WHERE tbl_name = :t AND type = :kind AND sql > ''"
    )
    [(made,)] = connection.execute(parts, {"t": table, "kind": "table"})
    indexes = [row[0] for row in connection.execute(parts, {"t": table, "kind": "index"})]
    before = [row[1] for row in connection.execute(sa.text(f"PRAGMA table_info({table})"))]
    names = ", ".join(name for name in before if name not in dropped)
    connection.execute(sa.text("PRAGMA legacy_alter_table = ON"))
    op.rename_table(table, f"{table}_before")
    connection.exec_driver_sql(_remade(made, columns, dropped))
    op.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table}_before")
    op.drop_table(f"{table}_before")
    connection.execute(sa.text("PRAGMA legacy_alter_table = OFF"))
    for index in indexes:
        connection.exec_driver_sql(index)


def _remade(made: str, columns: Columns, dropped: Sequence[str]) -> str:
    """The statement that made a table, with columns put in and left out; each stands on a line of its own."""
    lines: list[str] = []
    for line in made.splitlines():
        name = line.split()[0].strip('"') if line.startswith("\t") else ""
        if name in dropped:
            continue
        lines.append(line)
        dialect = op.get_bind().dialect
        lines += [f"\t{CreateColumn(c).compile(dialect=dialect)}, " for c in columns.get(name, ())]
    return "\n".join(lines)


def _create_delay() -> None:
    op.create_table(
        "delay",
        sa.Column("execution", Id, nullable=False, autoincrement=False),
        sa.Column("lane", Id, nullable=False),
        sa.Column("band", sa.SmallInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("enqueued_at", Moment, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        *_counts(),
        sa.Column("due_at", Moment),
        sa.Column("definition", Id, nullable=False),
        sa.Column("needs", JsonText),
        sa.PrimaryKeyConstraint("execution", name="pk_delay"),
    )
    op.create_index("ix_delay_due_at", "delay", ["due_at"])
    op.create_index("ix_delay_lane", "delay", ["lane"])


def _create_execution_attempt() -> None:
    op.create_table(
        "execution_attempt",
        sa.Column("execution", Id, nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("worker", Id),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("started_at", Moment),
        sa.Column("ended_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("execution", "attempt", name="pk_execution_attempt"),
    )


def _create_worker_history() -> None:
    op.create_table(
        "worker_history",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("worker", Id, nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("execution", Id),
        sa.Column("downtime_seconds", sa.Float),
        sa.Column("text", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_worker_history"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_worker_history_worker_id", "worker_history", ["worker", "id"])
    op.create_index("ix_worker_history_event_at", "worker_history", ["event", "at"])


def _create_worker_setback() -> None:
    op.create_table(
        "worker_setback",
        sa.Column("worker", Id, nullable=False, autoincrement=False),
        sa.Column("action_ref", sa.Text, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("since", Moment, nullable=False),
        sa.Column("first_execution", Id, nullable=False),
        sa.Column("until", Moment),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("worker", "action_ref", name="pk_worker_setback"),
    )
