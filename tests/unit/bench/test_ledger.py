"""What a statement counts as, and where its time is noted."""

import pytest

from bench.cost.ledger import Ledger, rows_label, shortened
from bench.cost.spans import STORE, Span


@pytest.mark.parametrize(
    ("sql", "label"),
    [
        ("SELECT id FROM lane FOR UPDATE OF lane", "rows read"),
        ("SELECT id FROM entry FOR NO KEY UPDATE SKIP LOCKED", "rows read"),
        ("UPDATE entry SET state = 'ready'", "rows changed in entry"),
        ("DELETE FROM entry WHERE execution = 1 RETURNING lane", "rows deleted from entry"),
        ("INSERT INTO decision (a, b) VALUES (?, ?)", "rows into decision"),
        (
            "WITH gone AS (DELETE FROM delay RETURNING id) SELECT id FROM gone",
            "rows deleted from delay",
        ),
    ],
)
def test_rows_count_for_the_table_that_a_statement_changes(sql: str, label: str) -> None:
    assert rows_label(sql) == label


def test_a_statement_is_shown_in_one_line_without_the_columns_of_an_insert() -> None:
    assert shortened("INSERT INTO t (a, b)\n   VALUES (?, ?)") == "INSERT INTO t (…) VALUES (?, ?)"


def test_a_statements_time_is_its_stages_sql_and_not_its_own_work() -> None:
    ledger = Ledger()
    stage = Span("assign", ledger.note_stage, cpu=1.0, wall=1.5, place=STORE)
    statement = Span("SELECT 1", lambda _span: None, parent=stage, cpu=0.25, wall=0.75)

    ledger.note_statement(statement, rows=3)
    ledger.note_stage(stage)

    noted = ledger.stages["assign"]
    assert (noted.calls, noted.store_cpu, noted.store_waited) == (1, 1.0, 0.5)
    assert (noted.sql_cpu, noted.sql_waited) == (0.25, 0.5)
    assert ledger.counts == {"statements": 1, "rows read": 3}


def test_the_slowest_statement_comes_first() -> None:
    ledger = Ledger()
    for sql, seconds in (("SELECT 1", 0.1), ("SELECT 2", 0.3), ("SELECT 3", 0.2)):
        ledger.note_statement(Span(sql, lambda _span: None, wall=seconds), rows=1)
    assert [one.sql for one in ledger.slowest()] == ["SELECT 2", "SELECT 3", "SELECT 1"]
