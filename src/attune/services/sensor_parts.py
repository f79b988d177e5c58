"""The parts of a process that watches the world: so far nothing but what every role stands on."""

from attune.services.base import Base
from attune.services.part import Part


def parts(_base: Base) -> list[Part]:
    return []
