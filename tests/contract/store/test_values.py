"""What goes in comes out, as the type that was asked for."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attune.kernel.errors import InvalidInput, NotFound, StepMisuse
from attune.store.database import Database, Tx
from attune.store.values import Json
from tests.contract.store.world import Content, Label, Parcel, State, add, parcel

MOMENT = datetime(2026, 10, 25, 1, 59, 59, 999_999, tzinfo=UTC)

ALL = "SELECT id, label, state, weight, fragile, ratio, sent_at, content, inside, note FROM parcel ORDER BY id"

text = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
moments = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)
)


async def put(tx: Tx, *rows: Parcel) -> None:
    await tx.execute("DELETE FROM parcel")
    await tx.insert(parcel, rows)


async def every(tx: Tx) -> list[Parcel]:
    return await tx.all(Parcel, ALL)


async def test_each_type_comes_back_as_it_went(database: Database) -> None:
    rows = [
        Parcel(1, "full", State.SENT, 7, True, 0.5, MOMENT, {"a": [1, None, "x"], "ü": 1.5}, None),
        Parcel(2, None, State.PACKED, None, False, None, None, None, 1),
    ]
    await database.run(put, *rows)
    assert await database.run(every) == rows


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    nulls=st.lists(
        st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), max_size=130
    )
)
async def test_any_number_of_rows_come_back_with_the_nulls_they_had(
    database: Database, nulls: list[tuple[bool, bool, bool, bool]]
) -> None:
    rows = [
        Parcel(
            number,
            f"parcel {number}",
            weight=None if light else number,
            sent_at=None if unsent else MOMENT,
            content=None if empty else [number],
            note=None if unnoted else "with care",
        )
        for number, (light, unsent, empty, unnoted) in enumerate(nulls, start=1)
    ]
    await database.run(put, *rows)
    assert await database.run(every) == rows


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    identity=st.integers(1, 2**62),
    label=text,
    weight=st.integers(0, 2**31 - 1),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    sent_at=moments,
    content=values,
)
async def test_any_value_comes_back_as_it_went(
    database: Database,
    identity: int,
    label: str,
    weight: int,
    ratio: float,
    sent_at: datetime,
    content: Any,
) -> None:
    row = Parcel(identity, label, State.SENT, weight, True, ratio, sent_at, content)
    await database.run(put, row)
    assert await database.run(every) == [row]


async def test_a_time_of_another_zone_is_the_same_moment(database: Database) -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    await database.run(put, Parcel(1, "x", sent_at=MOMENT.astimezone(zone)))
    [back] = await database.run(every)
    assert back.sent_at == MOMENT
    assert back.sent_at.utcoffset() == timedelta(0)


async def test_a_json_column_is_read_into_a_struct(database: Database) -> None:
    class WithContent(msgspec.Struct):
        content: Content

    async def step(tx: Tx) -> WithContent:
        await tx.insert(parcel, [Parcel(1, "x", content=Content("nail", 3))])
        return await tx.one(WithContent, "SELECT content FROM parcel")

    assert (await database.run(step)).content == Content("nail", 3)


async def test_json_stays_encoded_where_nobody_looks_into_it(database: Database) -> None:
    async def step(tx: Tx) -> msgspec.Raw:
        await tx.insert(parcel, [Parcel(1, "x", content=msgspec.Raw(b'{"big": [1, 2]}'))])
        return await tx.one(msgspec.Raw, "SELECT content FROM parcel")

    assert msgspec.json.decode(await database.run(step)) == {"big": [1, 2]}


@pytest.mark.parametrize("value", ["text", 0, False, [], {}, "", [1, "a"]])
async def test_a_parameter_marked_as_json_keeps_its_kind(database: Database, value: Any) -> None:
    async def step(tx: Tx) -> Any:
        await add(tx, "x")
        await tx.execute("UPDATE parcel SET content = :content", content=Json(value))
        return await tx.one(object, "SELECT content FROM parcel")

    back = await database.run(step)
    assert back == value
    assert type(back) is type(value)


async def test_lists_are_parameters(database: Database) -> None:
    async def step(tx: Tx) -> list[str]:
        ids = await add(tx, "a", "b", "c")
        found = await tx.all(
            str, "SELECT label FROM parcel WHERE id = ANY(:ids) ORDER BY id", ids=ids[1:]
        )
        none = await tx.all(str, "SELECT label FROM parcel WHERE id = ANY(:ids)", ids=[])
        rest = await tx.all(
            str, "SELECT label FROM parcel WHERE label <> ALL(:names)", names=["a", "c"]
        )
        return [*found, *none, *rest]

    assert await database.run(step) == ["b", "c", "b"]


@pytest.mark.parametrize("others", [0, 13, 14, 40])
async def test_many_rows_change_in_one_statement_and_only_those_whose_guard_holds(
    database: Database, others: int
) -> None:
    """However many they are: a short table is written otherwise than a long one."""

    async def step(tx: Tx) -> list[int]:
        ids = await add(tx, "a", "b", "c", *(f"other {number}" for number in range(others)))
        await tx.execute("UPDATE parcel SET state = 'sent' WHERE id = :id", id=ids[1])
        changes = [(i, State.SENT, MOMENT, {"n": i}, True) for i in ids]
        return await tx.all(
            int,
            """
            UPDATE parcel SET state = v.state, sent_at = v.at, content = v.content, fragile = v.fragile
            FROM ROWS(:changes AS v(id bigint, state text, at timestamptz, content jsonb, fragile boolean))
            WHERE parcel.id = v.id AND parcel.state = 'packed'
            RETURNING parcel.id
            """,
            changes=changes,
        )

    assert sorted(await database.run(step)) == [1, *range(3, others + 4)]
    first, second, third, *rest = await database.run(every)
    assert (first.sent_at, first.content, first.fragile) == (MOMENT, {"n": 1}, True)
    assert (second.sent_at, second.content) == (None, None)
    assert third.content == {"n": 3}
    assert [one.content for one in rest] == [{"n": n} for n in range(4, others + 4)]


async def test_one_row_changes_as_many_do(database: Database) -> None:
    async def step(tx: Tx, change: tuple[Any, ...]) -> list[int]:
        return await tx.all(
            int,
            """
            UPDATE parcel SET state = v.state, sent_at = v.at, content = v.content, weight = :weight
            FROM ROWS(:changes AS v(id bigint, state text, at timestamptz, content jsonb))
            WHERE parcel.id = v.id AND parcel.state = ANY(:states)
            RETURNING parcel.id
            """,
            changes=[change],
            states=[State.PACKED],
            weight=7,
        )

    first, second = await database.run(add, "a", "b")
    assert await database.run(step, (first, State.SENT, MOMENT, "text")) == [first]
    assert await database.run(step, (first, State.PACKED, None, None)) == []
    assert await database.run(step, (second, State.PACKED, None, None)) == [second]
    sent, packed = await database.run(every)
    assert (sent.state, sent.sent_at, sent.content, sent.weight) == (State.SENT, MOMENT, "text", 7)
    assert (packed.state, packed.sent_at, packed.content) == (State.PACKED, None, None)


async def test_a_list_of_one_is_a_list(database: Database) -> None:
    async def step(tx: Tx) -> list[list[str]]:
        ids = await add(tx, "a", "b", "c")
        one = "SELECT label FROM parcel WHERE id = ANY(:ids)"
        others = "SELECT label FROM parcel WHERE id <> ALL(:ids) ORDER BY id"
        return [await tx.all(str, one, ids=ids[:1]), await tx.all(str, others, ids=(ids[1],))]

    assert await database.run(step) == [["a"], ["a", "c"]]


@pytest.mark.parametrize("count", [1, 2, 100, 101, 300])
async def test_any_number_of_rows_change_each_by_its_key(database: Database, count: int) -> None:
    async def step(tx: Tx) -> int:
        await add(tx, *(f"parcel {number}" for number in range(count + 1)))
        ids = await tx.all(int, "SELECT id FROM parcel ORDER BY id")
        return await tx.execute(
            """
            UPDATE parcel SET weight = v.weight, content = v.content
              FROM ROWS(:rows AS v(id bigint, weight int, label text, content jsonb))
             WHERE parcel.id = v.id AND parcel.label = v.label
            """,
            rows=[
                (each, number, f"parcel {number}" if number != 1 else "another", [number])
                for number, each in enumerate(ids[:count])
            ],
        )

    async def weights(tx: Tx) -> list[tuple[int, Any]]:
        return [(one.weight or 0, one.content) for one in await every(tx)]

    assert await database.run(step) == count - (count > 1)
    kept = {1, count}
    assert await database.run(weights) == [
        (0, None) if number in kept else (number, [number]) for number in range(count + 1)
    ]


async def test_no_rows_change_nothing(database: Database) -> None:
    async def step(tx: Tx) -> int:
        await tx.insert(parcel, [])
        return await tx.execute(
            "UPDATE parcel SET label = v.label FROM ROWS(:rows AS v(id bigint, label text)) WHERE parcel.id = v.id",
            rows=[],
        )

    assert await database.run(step) == 0


async def test_rows_whose_key_is_taken_are_left_out_and_not_counted(database: Database) -> None:
    async def step(tx: Tx) -> int:
        await add(tx, "a", "b")
        rows = [Parcel(100 + number, label) for number, label in enumerate("abcdefghijklmnopq")]
        return await tx.insert(parcel, rows, skip_existing=True)

    assert await database.run(step) == 15


async def test_rows_that_exist_are_left_alone_on_request(database: Database) -> None:
    async def step(tx: Tx) -> list[str]:
        await add(tx, "a")
        return await tx.all(
            str,
            """
            INSERT INTO parcel (id, label, state, fragile)
            SELECT v.id, v.label, 'packed', false FROM ROWS(:rows AS v(id bigint, label text)) WHERE true
            ON CONFLICT (label) DO NOTHING RETURNING label
            """,
            rows=[(10, "a"), (11, "b")],
        )

    assert await database.run(step) == ["b"]


async def test_a_subselect_can_pick_lock_and_limit(database: Database) -> None:
    async def step(tx: Tx) -> list[int]:
        await add(tx, "a", "b", "c")
        return await tx.all(
            int,
            """
            UPDATE parcel SET state = :sent WHERE id = ANY(ARRAY(
                SELECT id FROM parcel WHERE (state = 'packed') ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
            )) RETURNING id
            """,
            sent=State.SENT,
            limit=2,
        )

    assert sorted(await database.run(step)) == [1, 2]


async def test_the_elements_of_a_list_are_rows(database: Database) -> None:
    async def step(tx: Tx) -> list[int]:
        await add(tx, "a", "b", "c")
        sql = "UPDATE parcel SET content = :content WHERE label = :label"
        await tx.execute(sql, content=Json([3, 1]), label="b")
        await tx.execute(sql, content=Json([]), label="c")
        return await tx.all(
            int,
            """
            SELECT id FROM parcel WHERE id = ANY(ARRAY(
                SELECT CAST(e.value AS bigint) FROM parcel p CROSS JOIN ELEMENTS(p.content) AS e
                 WHERE p.content IS NOT NULL)) ORDER BY id
            """,
        )

    assert await database.run(step) == [1, 3]


async def test_a_statement_says_how_many_rows_it_touched(database: Database) -> None:
    async def step(tx: Tx) -> tuple[int, int]:
        await add(tx, "a", "b")
        touched = await tx.execute("UPDATE parcel SET weight = 1")
        return touched, await tx.execute("UPDATE parcel SET weight = 2 WHERE id = :id", id=99)

    assert await database.run(step) == (2, 0)


async def test_one_row_is_found_or_its_absence_is_an_error(database: Database) -> None:
    async def step(tx: Tx, label: str) -> Label:
        return await tx.one(Label, "SELECT id, label FROM parcel WHERE label = :label", label=label)

    await database.run(add, "a")
    assert (await database.run(step, "a")).label == "a"
    with pytest.raises(NotFound):
        await database.run(step, "b")


async def test_first_is_none_where_there_is_none(database: Database) -> None:
    async def step(tx: Tx) -> tuple[int | None, int | None]:
        return (
            await tx.first(int, "SELECT id FROM parcel"),
            await tx.first(int, "SELECT max(id) FROM parcel"),
        )

    assert await database.run(step) == (None, None)


async def test_columns_must_fit_the_struct(database: Database) -> None:
    async def step(tx: Tx) -> None:
        await add(tx, "a")
        await tx.all(Label, "SELECT id, state FROM parcel")

    with pytest.raises(StepMisuse, match=r"lacks \['label'\].*\['state'\] have no place"):
        await database.run(step)


async def test_parameters_must_be_those_of_the_statement(database: Database) -> None:
    async def step(tx: Tx) -> None:
        await tx.all(int, "SELECT id FROM parcel WHERE id = :id", idd=1)

    with pytest.raises(StepMisuse, match=r"\['id'\], not \['idd'\]"):
        await database.run(step)


async def test_ids_rise_and_are_not_given_twice_even_after_a_delete_and_a_restart(
    database: Database, world: Any
) -> None:
    async def remove(tx: Tx) -> None:
        await tx.execute("DELETE FROM parcel")

    first = await database.run(add, "a", "b", "c")
    await database.run(remove)
    database = await world.crash_and_restart(database)
    try:
        second = await database.run(add, "d")
    finally:
        await database.close()
    assert first == sorted(set(first))
    assert second[0] > first[-1]


@pytest.mark.parametrize("column", ["id", "inside"])
async def test_a_value_that_the_database_cannot_hold_is_invalid_input(
    database: Database, column: str
) -> None:
    async def by_parameter(tx: Tx) -> None:
        await tx.execute(f"UPDATE parcel SET {column} = :value", value=2**70)

    async def by_row(tx: Tx) -> None:
        await tx.insert(parcel, [Parcel(2**70, "x")])

    for step in (by_parameter, by_row):
        with pytest.raises(InvalidInput, match="cannot hold a value"):
            await database.run(step)
    await database.run(add, "after")


async def test_text_in_quotes_and_comments_is_not_a_parameter(database: Database) -> None:
    async def step(tx: Tx) -> str:
        return await tx.one(str, "SELECT ':no' || :yes -- :neither\n", yes="x")

    assert await database.run(step) == ":nox"
