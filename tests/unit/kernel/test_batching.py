"""Many requests, one flush."""

import asyncio

import pytest

from attune.kernel.batching import Batcher


async def test_the_first_goes_at_once_and_the_rest_together() -> None:
    batches: list[list[int]] = []
    gate = asyncio.Event()

    async def flush(items: list[int]) -> list[int]:
        batches.append(items)
        await gate.wait()
        return [item * 2 for item in items]

    batcher: Batcher[int, int] = Batcher("numbers", flush)
    answers = asyncio.gather(*(batcher.submit(number) for number in range(5)))
    await asyncio.sleep(0)
    late = asyncio.create_task(batcher.submit(5))
    await asyncio.sleep(0)
    gate.set()
    assert await answers == [0, 2, 4, 6, 8]
    assert await late == 10
    assert [item for batch in batches for item in batch] == [0, 1, 2, 3, 4, 5]
    assert len(batches) == 2


async def test_a_batch_has_at_most_its_limit() -> None:
    sizes: list[int] = []

    async def flush(items: list[int]) -> list[int]:
        sizes.append(len(items))
        return items

    batcher: Batcher[int, int] = Batcher("numbers", flush, limit=3)
    assert await asyncio.gather(*(batcher.submit(n) for n in range(7))) == list(range(7))
    assert max(sizes) == 3


async def test_an_error_of_one_item_is_its_own_and_an_error_of_the_flush_is_everybodys() -> None:
    async def flush(items: list[int]) -> list[int | Exception]:
        if 13 in items:
            raise RuntimeError("all")
        return [ValueError("one") if item == 1 else item for item in items]

    batcher: Batcher[int, int] = Batcher("numbers", flush)
    found = await asyncio.gather(*(batcher.submit(n) for n in (0, 1, 2)), return_exceptions=True)
    assert found[0] == 0
    assert isinstance(found[1], ValueError)
    assert found[2] == 2
    with pytest.raises(RuntimeError, match="all"):
        await batcher.submit(13)
    assert await batcher.submit(3) == 3


async def test_whoever_left_does_not_keep_the_others_from_their_answers() -> None:
    gate = asyncio.Event()

    async def flush(items: list[int]) -> list[int]:
        await gate.wait()
        return items

    batcher: Batcher[int, int] = Batcher("numbers", flush)
    leaving = asyncio.create_task(batcher.submit(1))
    staying = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    leaving.cancel()
    gate.set()
    assert await staying == 2
    await batcher.stop()
