"""A database with work in it is brought to this version with that work."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from attune.store import migrate
from attune.store.schema import SCHEMA

NOW = "2026-01-01 00:00:00+00:00"
ROWS = (
    """INSERT INTO policy (id, ref, name, enabled, priority, scope_type, scope_ref, concurrency_limit,
              concurrency_method, concurrency_parameters, quotas, windows, blackouts, tags, is_adhoc,
              created, updated)
       VALUES (7, 'core.one', 'One', true, 0, 'action', 'core.noop', 1, 'enqueue', '[]', '[]', '[]', '[]', '[]',
               true, :now, :now)""",
    """INSERT INTO lane (id, action_ref, group_key, paused, next_sequence, queue_length, active_count,
              total_enqueued, total_completed, last_enqueued_at, created, updated)
       VALUES (3, 'core.noop', '', false, 3, 1, 1, 2, 0, :now, :now, :now)""",
    """INSERT INTO entry (execution, lane, band, sequence, state, enqueued_at, attempt, definition)
       VALUES (11, 3, 2, 1, 'ready', :now, 1, 1), (12, 3, 2, 2, 'queued', :now, 1, 1)""",
)


def as_it_was(connection: sa.Connection) -> None:
    """The version before lanes kept the words of their policies, with one execution running and one waiting."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.commit()
    config = migrate._config()
    config.attributes["connection"] = connection
    command.upgrade(config, "0004")
    on_postgresql = connection.dialect.name == "postgresql"
    for statement in ROWS:
        text = statement if on_postgresql else statement.replace(":now", "1767225600000000")
        connection.execute(sa.text(text.replace(":now", f"'{NOW}'")))
    connection.commit()


def lane(connection: sa.Connection) -> tuple[object, ...]:
    found = connection.execute(
        sa.text(
            "SELECT id, queue_length, active_count, next_sequence, stamp, max_concurrent, next_decision FROM lane"
        )
    )
    return tuple(found.one())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'attune.db'}"
    return str(request.getfixturevalue("postgresql_url"))


async def test_lanes_keep_who_stands_in_them_and_follow_their_policy_from_the_next_look_on(
    url: str,
) -> None:
    await migrate._with_connection(url, as_it_was)
    await migrate.upgrade(url)
    await migrate.check(url)
    assert await migrate._with_connection(url, lane) == (3, 1, 1, 3, "", None, 1)

    def rows(connection: sa.Connection) -> tuple[object, ...]:
        policies = connection.execute(sa.text("SELECT id, concurrency_limit FROM policy")).all()
        entries = connection.execute(
            sa.text("SELECT execution FROM entry ORDER BY execution")
        ).all()
        new = connection.execute(
            sa.text(
                """INSERT INTO lane (action_ref, group_key, paused, next_sequence, queue_length,
                          active_count, total_enqueued, total_completed, last_enqueued_at, created, updated)
                   SELECT 'core.echo', group_key, paused, 1, 0, 0, 0, 0, created, created, created FROM lane
                   RETURNING id"""
            )
        ).scalar_one()
        return [tuple(one) for one in policies], [tuple(one) for one in entries], new > 0

    found = await migrate._with_connection(url, rows)
    assert found == ([(7, 1)], [(11,), (12,)], True)
