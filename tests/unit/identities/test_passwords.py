"""Passwords: kept as argon2id, checked in the same way for those that exist and those that do not."""

import asyncio
from unittest.mock import patch

import argon2
import pytest

from attune.identities.passwords import MEMORY_KIB, TIME_COST, Passwords


def cheap(time_cost: int = 1) -> Passwords:
    return Passwords(time_cost=time_cost, memory_kib=64)


async def test_a_password_matches_its_own_hash_and_no_other() -> None:
    passwords = cheap()
    kept = await passwords.hash("correct horse")
    assert kept.startswith("$argon2id$")
    assert "correct" not in kept
    assert await passwords.matches("correct horse", kept)
    assert not await passwords.matches("Correct horse", kept)
    assert not await passwords.matches("", kept)
    assert await passwords.hash("correct horse") != kept


@pytest.mark.parametrize("password", ["pässwörd 🔑", " spaces count ", "x" * 128, "nul\0inside"])
async def test_any_characters_make_a_password(password: str) -> None:
    passwords = cheap()
    kept = await passwords.hash(password)
    assert await passwords.matches(password, kept)
    assert not await passwords.matches(password + "x", kept)


async def test_without_a_kept_hash_the_same_work_is_done_and_nothing_matches() -> None:
    passwords = cheap()
    kept = await passwords.hash("correct horse")
    verify = argon2.PasswordHasher.verify
    with patch.object(argon2.PasswordHasher, "verify", autospec=True, side_effect=verify) as work:
        assert not await passwords.matches("nobody has this hash", None)
        assert not await passwords.matches("wrong", kept)
    nobodys, somebodys = (call.args[1].split("$")[:4] for call in work.call_args_list)
    assert nobodys == somebodys


async def test_the_hash_that_nobody_has_is_worked_through_to_its_end_and_refused() -> None:
    """One that argon2 cannot read would be refused at once, and the time would tell."""
    passwords = cheap()
    with patch.object(argon2.PasswordHasher, "verify", autospec=True, return_value=True) as work:
        await passwords.matches("anything", None)
    nobodys = work.call_args.args[1]
    somebodys = await passwords.hash("correct horse")
    assert argon2.extract_parameters(nobodys) == argon2.extract_parameters(somebodys)
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        argon2.PasswordHasher().verify(nobodys, "anything")


async def test_a_hash_that_is_none_matches_nothing() -> None:
    assert not await cheap().matches("x", "not a hash")


async def test_a_hash_of_other_parameters_is_outdated() -> None:
    kept = await cheap().hash("correct horse")
    assert not cheap().is_outdated(kept)
    assert cheap(time_cost=2).is_outdated(kept)
    assert await cheap(time_cost=2).matches("correct horse", kept)


async def test_the_parameters_are_those_that_owasp_asks_for() -> None:
    kept = await Passwords().hash("correct horse")
    assert kept.split("$")[3] == f"m={MEMORY_KIB},t={TIME_COST},p=1"
    assert (MEMORY_KIB, TIME_COST) >= (19456, 2)


async def test_hashing_leaves_the_event_loop_free() -> None:
    turns = 0
    hashing = asyncio.create_task(Passwords(time_cost=8).hash("correct horse"))
    while not hashing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20
