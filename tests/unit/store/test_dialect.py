"""What the databases are told: a short list or table is its values, because SQLite reads JSON again for every column."""

import pytest

from attune.kernel.errors import StepMisuse
from attune.store.dialect import Size, for_postgresql, for_sqlite

MOVE = """
    UPDATE parcel SET state = v.state, sent_at = :now FROM ROWS(:moves AS v(id bigint, state text))
     WHERE parcel.id = v.id AND parcel.label = ANY(:labels::text[])
"""


def test_an_update_from_one_row_has_its_values_in_it() -> None:
    one = for_sqlite(MOVE, (("moves", 1),)).sql
    assert "SET state = ?2, sent_at = ?3" in one
    assert "parcel.id = ?1" in one
    assert "FROM json_each(?4)" in one


def test_on_postgresql_it_has_them_with_their_types_and_no_join() -> None:
    one = for_postgresql(MOVE, Size.ONE)
    assert "SET state = $2::text, sent_at = $3" in one.sql
    assert "WHERE parcel.id = $1::bigint" in one.sql
    assert "FROM" not in one.sql
    assert one.plural == ("moves",)


def test_on_postgresql_an_update_from_rows_finds_each_by_its_key() -> None:
    few = for_postgresql(MOVE, Size.of([2]))
    place = "array_position($1::bigint[], parcel.id)"
    assert f"SET state = ($2::text[])[{place}], sent_at = $3" in few.sql
    assert "WHERE parcel.id = ANY($1::bigint[])" in few.sql
    assert "unnest" not in few.sql
    assert "FROM (SELECT id, state FROM unnest" in for_postgresql(MOVE, Size.MANY).sql
    with pytest.raises(StepMisuse, match="needs `WHERE table.key = rows.key` first"):
        for_postgresql(MOVE.replace("parcel.id = v.id AND", ""))


def test_on_postgresql_a_table_of_one_row_is_its_values() -> None:
    look = "SELECT p.id FROM parcel p JOIN ROWS(:some AS s(label text)) ON p.label = s.label"
    one = for_postgresql(look, Size.ONE)
    assert "JOIN (SELECT $1::text AS label) AS s ON" in one.sql
    assert for_postgresql(look).plural == one.plural == ("some",)


def test_a_table_of_few_rows_has_their_values() -> None:
    two = for_sqlite(MOVE, (("moves", 2),)).sql
    assert "SET state = v.state, sent_at = ?1" in two
    assert (
        "FROM (SELECT column1 AS id, column2 AS state FROM (VALUES (?2, ?3), (?4, ?5))) AS v" in two
    )
    assert "FROM json_each(?6)" in two


def test_a_list_of_few_is_its_elements() -> None:
    assert "parcel.label IN (?3)" in for_sqlite(MOVE, (("labels", 1),)).sql
    assert "parcel.label IN (?3, ?4)" in for_sqlite(MOVE, (("labels", 2),)).sql


def test_what_may_be_short_is_told() -> None:
    assert for_sqlite(MOVE).plural == ("moves", "labels")
    assert for_sqlite("SELECT v.id FROM ROWS(:moves AS v(id bigint))").plural == ("moves",)


def test_a_name_that_is_met_again_has_its_number() -> None:
    assert for_sqlite("SELECT :a, :b, :a").sql == "SELECT ?1, ?2, ?1"
