"""Lanes that do as they should, and log it: a plain model, written without the checker in mind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Decision,
    Item,
    Joined,
    Left,
    LimitChanged,
    Paused,
    Refused,
    Reprioritized,
    Resumed,
    Went,
)
from attune.pipeline.queues.verify import Proof, Replay, Violation

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Standing:
    execution: ExecutionId
    sequence: int
    band: int


@dataclass
class Lane:
    """`do` takes the words of one transaction, admits whoever can go, and logs a row."""

    id: int
    limit: int | None = 1
    executions: "count[int]" = field(default_factory=lambda: count(1))
    rows: list[Decision] = field(default_factory=list)
    waiting: list[Standing] = field(default_factory=list)
    holding: list[Standing] = field(default_factory=list)
    paused: bool = False
    sequence: int = 0

    def do(self, *words: tuple[Any, ...], ageing: bool = False) -> None:
        before = len(self.holding)
        items: list[Item] = []
        for name, *arguments in words:
            act: Callable[..., Iterable[Item]] = getattr(self, name)
            items += act(*arguments)
        items += self.admit(ageing)
        self.log(before, items)

    def log(self, before: int, items: list[Item]) -> None:
        number = len(self.rows) + 1
        self.rows.append(
            Decision(
                lane=LaneId(self.id),
                number=number,
                at=START + timedelta(seconds=number),
                active_before=before,
                active_after=len(self.holding),
                queue_length=len(self.waiting),
                max_concurrent=self.limit,
                reason=self.reason(),
                items=tuple(items),
            )
        )

    def reason(self) -> str | None:
        if not self.waiting:
            return None
        return "pause" if self.paused else "concurrency"

    def join(self, band: int, at_once: bool = False) -> Iterable[Item]:
        """Where nobody waits and there is room, joining and being admitted may be one note."""
        one = self._new(next(self.executions), band)
        if at_once and not self.waiting and not self.paused and self._has_room():
            self.holding.append(one)
            yield Joined(one.execution, one.sequence, one.band)
        else:
            self.waiting.append(one)
            yield Joined(one.execution, one.sequence, one.band, "concurrency")

    def put_back(self, index: int) -> Iterable[Item]:
        """It gives up its slot and waits again, at its old place."""
        if self.holding:
            one = self.holding.pop(index % len(self.holding))
            self.waiting.append(one)
            yield Left(one.execution, one.sequence, one.band, held=True)
            yield Joined(one.execution, one.sequence, one.band, "turn")

    def come(self, band: int, held: bool) -> Iterable[Item]:
        one = self._new(next(self.executions), band)
        (self.holding if held else self.waiting).append(one)
        yield Came(one.execution, one.sequence, one.band, held)

    def end(self, index: int) -> Iterable[Item]:
        for one, held in self._picked(index):
            yield Left(one.execution, one.sequence, one.band, held)

    def go(self, index: int) -> Iterable[Item]:
        for one, held in self._picked(index):
            yield Went(one.execution, one.sequence, one.band, held)

    def reprioritize(self, index: int, band: int) -> Iterable[Item]:
        everybody = [*self.holding, *self.waiting]
        if everybody:
            one = everybody[index % len(everybody)]
            before, one.band = one.band, band
            yield Reprioritized(one.execution, one.sequence, before, band)

    def refuse(self) -> Iterable[Item]:
        yield Refused(None, "quota", "The quota is used up.")

    def pause(self) -> Iterable[Item]:
        self.paused = True
        yield Paused("ann")

    def resume(self) -> Iterable[Item]:
        self.paused = False
        yield Resumed("ann")

    def change(self, limit: int | None) -> Iterable[Item]:
        before, self.limit = self.limit, limit
        yield LimitChanged(before, limit, "The policy changed.")

    def admit(self, ageing: bool) -> Iterable[Item]:
        while self.waiting and not self.paused and self._has_room():
            one = min(self.waiting, key=lambda each: (each.band, each.sequence))
            if ageing:
                one = min(self.waiting, key=lambda each: each.sequence)
            self.waiting.remove(one)
            self.holding.append(one)
            older = [each.sequence for each in self.waiting if each.sequence < one.sequence]
            raised = any(each.band < one.band for each in self.waiting)
            rule = "ageing" if raised else "band" if older else None
            yield Admitted(one.execution, one.sequence, one.band, min(older, default=None), rule)

    def _has_room(self) -> bool:
        return self.limit is None or len(self.holding) < self.limit

    def _new(self, execution: int, band: int) -> Standing:
        self.sequence += 1
        return Standing(ExecutionId(execution), self.sequence, band)

    def _picked(self, index: int) -> Iterable[tuple[Standing, bool]]:
        everybody = [*self.holding, *self.waiting]
        if everybody:
            one = everybody[index % len(everybody)]
            held = one in self.holding
            (self.holding if held else self.waiting).remove(one)
            yield one, held


def proved(rows: Sequence[Decision]) -> Proof:
    replay = Replay()
    for row in rows:
        replay.feed(row)
    return replay.proof()


def broken(rows: Sequence[Decision]) -> Violation:
    violation = proved(rows).violation
    assert violation is not None
    return violation
