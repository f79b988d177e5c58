"""Faults and warnings of a pack, collected: its author should see all of them at once."""

from collections.abc import Iterator

import msgspec

from attune.kernel.errors import InvalidInput

_SHOWN = 20


class Fault(msgspec.Struct, frozen=True):
    """Which file, which field (dotted; empty for the file as a whole), and which rule it breaks."""

    file: str
    field: str
    rule: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.field, self.rule) if part)


class Findings:
    """Collects while files are read. Faults refuse the pack; warnings travel with it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._warnings: list[Fault] = []

    def fault(self, file: str, field: str, rule: str) -> None:
        self._faults.append(Fault(file, field, rule))

    def warn(self, file: str, field: str, rule: str) -> None:
        self._warnings.append(Fault(file, field, rule))

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(map(str, self._warnings))

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def refuse_faults(self) -> None:
        """Raise one `InvalidInput` that tells every fault; nothing if there is none."""
        if self._faults:
            raise refusal(self._faults)


def refusal(faults: list[Fault]) -> InvalidInput:
    told = [str(fault) for fault in faults]
    rest = [f"and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return InvalidInput("; ".join(told[:_SHOWN] + rest), field=faults[0].field, faults=told)
