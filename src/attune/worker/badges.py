"""A number that a process and all that it ever starts carry, whatever they do to their session, parent or environment.

It is a limit on file locks, which the kernel hands down to every child and has not enforced for decades. The soft
limit is the badge of the worker, the hard one that of the run: a process below a run can give back neither, only
lower them on purpose. Nothing but the standard library: the guardian's process reads badges too.
"""

import resource
from contextlib import suppress
from typing import Final, NamedTuple

from attune.worker.proc import Identity, limits_of, myself

_LOCKS: Final = 10
_NAME: Final = b"Max file locks"
_PID_BITS: Final = 22


class Badges(NamedTuple):
    worker: int | None
    run: int | None


def badge(identity: Identity) -> int:
    """Unique as long as the machine runs; a later process has a higher one, which a limit must have that is hard."""
    return identity.started << _PID_BITS | identity.pid


def badges(pid: int) -> Badges:
    return Badges(*limits_of(pid, _NAME))


def wear() -> int:
    """What this process starts from now on has its badge. Return it; 0 if the process may not have one."""
    number = badge(myself())
    try:
        resource.setrlimit(_LOCKS, (number, resource.getrlimit(_LOCKS)[1]))
    except (OSError, ValueError):
        return 0
    return number


def take_off() -> None:
    with suppress(OSError, ValueError):
        hard = resource.getrlimit(_LOCKS)[1]
        resource.setrlimit(_LOCKS, (hard, hard))


def pin(identity: Identity) -> None:
    """Give a run's first process its own badge; one that may not have it is known by its session still."""
    with suppress(OSError, ValueError):
        soft, _ = resource.prlimit(identity.pid, _LOCKS)
        resource.prlimit(identity.pid, _LOCKS, (soft, badge(identity)))
