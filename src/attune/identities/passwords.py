"""Passwords are kept as argon2id hashes, made beside the event loop."""

import asyncio
import base64
from typing import Final

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

# 19 MiB and two passes: what OWASP asks for. A login costs tens of milliseconds of one core.
TIME_COST: Final = 2
MEMORY_KIB: Final = 19 * 1024
_AT_ONCE: Final = 4


class Passwords:
    """Few are hashed at once, so that a flood of logins takes neither all memory nor all threads."""

    def __init__(self, time_cost: int = TIME_COST, memory_kib: int = MEMORY_KIB) -> None:
        self._hasher = argon2.PasswordHasher(
            time_cost=time_cost, memory_cost=memory_kib, parallelism=1
        )
        self._nobodys = _hash_of_nothing(time_cost, memory_kib)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        async with self._places:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, password: str, kept: str | None) -> bool:
        """Without a kept hash the same work is done for nothing: time must not tell which logins exist."""
        async with self._places:
            same = await asyncio.to_thread(self._verify, kept or self._nobodys, password)
        return same and kept is not None

    def is_outdated(self, kept: str) -> bool:
        """Whether it was made with other parameters than new ones are."""
        return self._hasher.check_needs_rehash(kept)

    def _verify(self, kept: str, password: str) -> bool:
        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False


def _hash_of_nothing(time_cost: int, memory_kib: int) -> str:
    """A hash that no password has: to check one against it costs as much as against a real one, to make it nothing."""
    salt, digest = (base64.b64encode(bytes(size)).decode().rstrip("=") for size in (16, 32))
    return f"$argon2id$v=19$m={memory_kib},t={time_cost},p=1${salt}${digest}"
