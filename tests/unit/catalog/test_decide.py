"""What a load changes: files win, except over what users made or switched themselves."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.equality import same
from attune.catalog.loading.decide import carried_config, carried_over, plan
from attune.catalog.model import Trigger
from attune.kernel.errors import Conflict
from attune.kernel.ids import PackId, TriggerId

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PACK = PackId(1)


def trigger(ref: str, **fields: Any) -> Trigger:
    usual: dict[str, Any] = {
        "id": TriggerId(7), "pack": PACK, "pack_ref": "shop", "label": "L", "is_adhoc": False,
        "declared": {"enabled": True}, "created": NOW, "updated": NOW,
    }  # fmt: skip
    return Trigger(ref=ref, **{**usual, **fields})


def planned(*present: Trigger, **wanted: dict[str, Any]) -> Any:
    rows = {row.ref: row for row in present}
    return plan("trigger", PACK, rows, {f"shop.{ref}": v for ref, v in wanted.items()}, "enabled")


def test_each_definition_is_created_updated_removed_or_left() -> None:
    found = planned(
        trigger("shop.same"),
        trigger("shop.renamed"),
        trigger("shop.gone"),
        trigger("shop.mine", is_adhoc=True),
        same={"label": "L", "enabled": True},
        renamed={"label": "New", "enabled": True},
        new={"label": "N", "enabled": False},
    )
    assert found.changes.created == ("shop.new",)
    assert found.create["shop.new"]["declared"] == {"enabled": False}
    assert found.update["shop.renamed"][1] == {"label": "New"}
    assert found.changes.removed == ("shop.gone",)
    assert found.changes.unchanged == ("shop.same",)


def test_a_switch_that_a_user_moved_stays() -> None:
    switched_off = trigger("shop.t", enabled=False)
    assert planned(switched_off, t={"label": "L", "enabled": True}).changes.unchanged == ("shop.t",)
    found = planned(trigger("shop.t"), t={"label": "L", "enabled": False})
    assert found.update["shop.t"][1] == {"enabled": False, "declared": {"enabled": False}}


@pytest.mark.parametrize(
    "row",
    [trigger("shop.t", is_adhoc=True), trigger("shop.t", pack=None)],
    ids=["by hand", "alone"],
)
def test_what_was_made_by_hand_is_not_overwritten(row: Trigger) -> None:
    with pytest.raises(Conflict, match=r"The trigger 'shop\.t' was made by hand"):
        planned(row, t={"label": "L", "enabled": True})


def test_configuration_is_carried_key_by_key() -> None:
    before = {"url": "a", "size": 1, "old": True, "gone": 1}
    current = {"url": "mine", "size": 1, "old": True, "own": "x"}
    now = {"url": "b", "size": 2, "new": 0, "gone": 2}
    assert carried_config(current, before, now) == {"url": "mine", "size": 2, "new": 0, "own": "x"}


values = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"])
configs = st.dictionaries(st.sampled_from("abc"), values)


@given(configs, configs)
def test_loading_the_same_file_again_keeps_the_configuration(
    current: dict[str, Any], declared: dict[str, Any]
) -> None:
    assert same(carried_config(current, declared, declared), current)


@given(values, values, values)
def test_carrying_over_is_either_the_users_or_the_files(
    current: Any, before: Any, now: Any
) -> None:
    found = carried_over(current, before, now)
    assert found is (now if same(current, before) else current)


def test_true_is_not_one() -> None:
    assert not same({"a": [1]}, {"a": [True]})
    assert same({"a": [1.0, None]}, {"a": [1, None]})
    assert not same({"a": 1}, {"b": 1})
    assert not same([1], [1, 2])
