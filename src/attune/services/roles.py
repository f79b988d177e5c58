"""The roles of a process, and `up`, which is all of them in one.

A role of its own needs PostgreSQL and RabbitMQ: several processes share neither an SQLite file nor a bus
that lives in memory. What a role is made of is loaded when the role is known: an executor that serves no
HTTP starts in half the time without it.
"""

import importlib
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from attune.kernel.errors import InvalidSettings
from attune.kernel.settings import Settings
from attune.services.base import Base, base_from
from attune.services.part import Part
from attune.services.process import Process


class Role(StrEnum):
    API = "api"
    EXECUTOR = "executor"
    WORKER = "worker"
    SENSOR = "sensor"


MODULES: Final = {
    Role.API: "api_parts",
    Role.EXECUTOR: "executor_parts",
    Role.WORKER: "worker_parts",
    Role.SENSOR: "sensor_parts",
}


def everything(settings: Settings, ready: Callable[[str], None], *, demo: bool = False) -> Process:
    """All roles in one process; `ready` gets the address when it can be used. `demo` loads the demo pack."""
    made: Process = _module("all_parts").process(base_from(settings), ready, demo=demo)
    return made


def role(role: Role, settings: Settings) -> Process:
    _check_shared(role, settings)
    base = base_from(settings)
    parts_of: Callable[[Base], list[Part]] = _module(MODULES[role]).parts
    return base.process(role, [*base.parts(), *parts_of(base)])


def _module(name: str) -> Any:
    return importlib.import_module(f"attune.services.{name}")


def _check_shared(role: Role, settings: Settings) -> None:
    if settings.embedded:
        raise InvalidSettings(
            f"`attune {role}` is one process of several, and SQLite belongs to one:"
            " set database.url to PostgreSQL, or run everything with `attune up`.",
            field="database.url",
        )
    if settings.message_queue.url is None:
        raise InvalidSettings(
            f"`attune {role}` talks to other processes: set message_queue.url to RabbitMQ.",
            field="message_queue.url",
        )
