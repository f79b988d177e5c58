from harness.postgresql import PostgreSQL


def test_data_survives_kill_and_restart(postgresql: PostgreSQL, postgresql_url: str) -> None:
    postgresql.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)", postgresql_url)

    postgresql.kill()
    postgresql.start()
    assert postgresql.execute("SELECT n FROM kept", postgresql_url) == "7"

    postgresql.restart()
    assert postgresql.execute("SELECT n FROM kept", postgresql_url) == "7"


def test_a_database_comes_and_goes(postgresql: PostgreSQL) -> None:
    postgresql.ensure_running()
    url = postgresql.create_database("coming_and_going")
    count = "SELECT count(*) FROM pg_database WHERE datname = 'coming_and_going'"

    assert postgresql.execute("SELECT current_database()", url) == "coming_and_going"
    postgresql.drop_database(url)
    assert postgresql.execute(count) == "0"


def test_only_a_durable_server_waits_for_the_disk(postgresql: PostgreSQL) -> None:
    postgresql.ensure_running()
    assert postgresql.execute("SHOW fsync") == "off"
    assert postgresql.execute("SHOW synchronous_commit") == "on"

    with PostgreSQL() as durable:
        assert durable.execute("SHOW fsync") == "on"
        assert durable.execute("SHOW full_page_writes") == "on"


def test_text_is_unicode_and_sorts_by_code_point(
    postgresql: PostgreSQL, postgresql_url: str
) -> None:
    assert postgresql.execute("SHOW server_encoding", postgresql_url) == "UTF8"
    assert postgresql.execute("SELECT 'a' > 'B'", postgresql_url) == "t"
