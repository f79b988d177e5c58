"""Structured logs: a fixed sentence plus fields, for people on a terminal and as JSON elsewhere.

No line shows a secret: fields whose name says so are masked, and so is the password in any URL. What
libraries log through `logging` takes the same way.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import msgspec
import structlog

from attune.kernel.settings import LogFormat, LogSettings
from attune.kernel.urls import masked

_SECRET_NAMES: Final = re.compile(
    r"password|passwd|secret|token|authorization|credential|api_?key|encryption_key|private_key",
    re.IGNORECASE,
)
_MASK: Final = "***"
# aiormq tells of each break with a traceback; our supervisor says it in a sentence.
_QUIET: Final = ("aiormq",)

_Event = MutableMapping[str, Any]


def configure_logs(settings: LogSettings, stream: TextIO = sys.stderr) -> None:
    """Set up logging for the whole process; the only place that does."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    level = getattr(logging, settings.level.upper())
    structlog.configure(
        processors=[*shared, *_rendering(settings.format, stream)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _name_of_logger],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(settings.format, stream),
            ],
        )
    )
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)


def mask_secrets(_logger: Any, _method: str, event: _Event) -> _Event:
    for name, value in event.items():
        event[name] = _masked(name, value)
    return event


def _masked(name: str, value: Any) -> Any:
    if _SECRET_NAMES.search(name) and value is not None:
        return _MASK
    if isinstance(value, str):
        return masked(value) if "://" in value else value
    if isinstance(value, dict):
        return {key: _masked(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(name, inner) for inner in value]
    return value


def _rendering(format_: LogFormat, stream: TextIO) -> list[structlog.types.Processor]:
    for_people = format_ is LogFormat.CONSOLE or (format_ is LogFormat.AUTO and stream.isatty())
    if for_people:
        return [
            structlog.processors.format_exc_info,
            mask_secrets,
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    return [
        structlog.processors.format_exc_info,
        mask_secrets,
        structlog.processors.JSONRenderer(serializer=_json),
    ]


def _json(event: _Event, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()


def _name_of_logger(_logger: Any, _method: str, event: _Event) -> _Event:
    event["logger"] = event["_record"].name
    return event
