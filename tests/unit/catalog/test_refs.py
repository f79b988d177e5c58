"""Refs are lower case, and a member's begins with its pack's."""

import pytest

from attune.catalog.refs import label_from, member_ref_fault, pack_ref_fault, unknown_word


@pytest.mark.parametrize("ref", ["core", "my-pack", "a_b", "2fa", "a" * 255])
def test_refs_of_packs(ref: str) -> None:
    assert pack_ref_fault(ref) is None


@pytest.mark.parametrize(
    "ref", ["", "Core", "a.b", "-a", "_a", "a b", "ä", "a\n", "a/b", "..", "123", "a" * 256]
)
def test_no_refs_of_packs(ref: str) -> None:
    assert pack_ref_fault(ref)


@pytest.mark.parametrize("ref", ["core.echo", "core.a.b", "core.2", "core.a-b_c"])
def test_refs_in_a_pack(ref: str) -> None:
    assert member_ref_fault(ref, "core") is None


@pytest.mark.parametrize(
    "ref", ["core", "core.", ".echo", "core..x", "core.X", "corex.y", "core.x\n", "core.../x"]
)
def test_no_refs_in_a_pack(ref: str) -> None:
    assert member_ref_fault(ref, "core")


def test_labels_from_names() -> None:
    assert label_from("shop.send_mail-now") == "Send Mail Now"
    assert label_from("on_x") == "On X"


def test_a_hint_only_where_there_is_one() -> None:
    assert (
        unknown_word("pyhton", ["python", "shell"])
        == "unknown word 'pyhton'; did you mean 'python'?"
    )
    assert (
        unknown_word("cobol", ["python", "shell"])
        == "unknown word 'cobol'; known are python, shell"
    )
