"""Those who wait in a replayed lane, so kept that the next and the oldest are found without looking at the rest."""

import heapq
from collections.abc import Iterator
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId

_SPARE: Final = 64


class Place(msgspec.Struct, frozen=True):
    """Where an execution stands."""

    execution: ExecutionId
    sequence: int
    band: int


class Line:
    """One heap for each band. What left from its middle stays there until it comes up, or outweighs the rest."""

    def __init__(self) -> None:
        self._places: dict[ExecutionId, Place] = {}
        self._bands: dict[int, list[tuple[int, ExecutionId]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[ExecutionId]:
        return iter(self._places)

    def get(self, execution: ExecutionId) -> Place | None:
        return self._places.get(execution)

    def add(self, place: Place) -> None:
        self._places[place.execution] = place
        band = self._bands.setdefault(place.band, [])
        heapq.heappush(band, (place.sequence, place.execution))
        self._tidy()

    def remove(self, execution: ExecutionId) -> None:
        del self._places[execution]
        self._tidy()

    def first(self, band: int) -> Place | None:
        """The oldest of this band."""
        heap = self._bands.get(band)
        while heap:
            sequence, execution = heap[0]
            place = self._places.get(execution)
            if place is not None and (place.sequence, place.band) == (sequence, band):
                return place
            heapq.heappop(heap)
        return None

    def head(self) -> Place | None:
        """Whose turn it is: the oldest of the highest band."""
        return next(self._firsts(), None)

    def oldest(self) -> Place | None:
        return min(self._firsts(), key=lambda place: place.sequence, default=None)

    def _firsts(self) -> Iterator[Place]:
        return (place for band in sorted(self._bands) if (place := self.first(band)))

    def _tidy(self) -> None:
        if sum(map(len, self._bands.values())) <= 2 * len(self._places) + _SPARE:
            return
        self._bands = {}
        for place in self._places.values():
            self._bands.setdefault(place.band, []).append((place.sequence, place.execution))
        for heap in self._bands.values():
            heapq.heapify(heap)
