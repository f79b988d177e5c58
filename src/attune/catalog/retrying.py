"""When a failed attempt is followed by another, and what one process of an action may use: shapes, as users write them."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

TEN_YEARS = 315_360_000.0


class Cause(StrEnum):
    """Why an attempt did not come to a good end."""

    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_STARTED = "not_started"
    WORKER_LOST = "worker_lost"


Delay = Annotated[float, msgspec.Meta(ge=0, le=TEN_YEARS)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class Retry(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What an action says of its retries, beside their number.

    Delays are in seconds: constant d, linear d·n, exponential d·2^(n-1), at most `max_delay`, each shortened at
    random by up to the share `jitter`. `on` names the causes after which there is another attempt; `exit_codes` and
    `matching` (patterns in the error's text) narrow `failed` down to those that match one of them. `queue_place` is
    where it stands then: `keep` is where it stood before, `tail` behind all others.
    """

    delay: Delay = 0
    backoff: Literal["constant", "linear", "exponential"] = "constant"
    max_delay: Delay | None = None
    jitter: Share = 0
    on: tuple[Cause, ...] = tuple(Cause)
    exit_codes: tuple[ExitCode, ...] = ()
    matching: tuple[Pattern, ...] = ()
    queue_place: Literal["keep", "tail"] = "keep"


class Retries(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An execution's own: how many, and how."""

    max_retries: int
    how: Retry = Retry()


Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(gt=0)]


class Limits(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a run may use. `memory_mb` and `open_files` bound each process, the others the whole run.

    `cpu_seconds` bounds each process as well, because the system counts by process. `output_mb` is how much of each
    stream is kept.
    """

    cpu_seconds: Amount | None = None
    memory_mb: Count | None = None
    open_files: Count | None = None
    processes: Count | None = None
    output_mb: Amount | None = None
