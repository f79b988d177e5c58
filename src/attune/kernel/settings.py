"""Every setting with its default. `configuration.py` reads them from file and environment.

Times are in seconds. A URL may hold a password, so it is secret: it shows itself in no log or error.
"""

import os
import socket
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic
from pydantic import AfterValidator, Field, SecretStr

from attune.kernel.urls import DatabaseKind, check_scheme, database_kind


def _url_of(*schemes: str) -> AfterValidator:
    def check(url: SecretStr) -> SecretStr:
        check_scheme(url.get_secret_value(), schemes)
        return url

    return AfterValidator(check)


Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080


class DatabaseSettings(Section):
    """`url` is left out for SQLite in the data directory, else postgresql://user:password@host/name."""

    url: Annotated[SecretStr, _url_of("postgresql", "postgres", "sqlite")] | None = None
    max_connections: Count = 20
    connect_timeout: Seconds = 10
    command_timeout: Seconds = 60


Secret = Annotated[SecretStr, Field(min_length=1)]


class SecuritySettings(Section):
    jwt_secret: Secret | None = None
    encryption_key: Secret | None = None
    allow_registration: bool | None = None
    default_permission_sets: list[str] = []
    admin_login: str | None = None
    admin_password: Secret | None = None


class MessageQueueSettings(Section):
    """`url` is left out for the in-process bus, else amqp://user:password@host/vhost."""

    url: Annotated[SecretStr, _url_of("amqp", "amqps")] | None = None
    exchange: Annotated[str, Field(min_length=1, max_length=200)] = "attune.executions"
    prefetch_count: Annotated[int, Field(ge=1, le=65535)] = 10
    message_ttl: Seconds = 3600
    max_retries: Annotated[int, Field(ge=0)] = 10
    retry_delay: Seconds = 1
    retry_delay_max: Seconds = 60
    publish_timeout: Seconds = 10
    heartbeat: Annotated[int, Field(ge=1)] = 10


class RedisSettings(Section):
    url: Annotated[SecretStr, _url_of("redis", "rediss", "unix")] | None = None


class QueueBackend(StrEnum):
    DATABASE = "database"
    REDIS = "redis"


class QueueSettings(Section):
    backend: QueueBackend = QueueBackend.DATABASE
    max_queue_length: Count = 10000
    queue_timeout_seconds: Seconds = 3600
    enable_metrics: bool = True


class ExecutorSettings(Section):
    queue: QueueSettings = QueueSettings()
    scheduled_timeout: Seconds = 300
    timeout_check_interval: Seconds = 60
    worker_queue_ttl: Seconds = 300
    health_check_interval: Seconds = 30
    no_worker_grace: Annotated[float, Field(ge=0)] = 0
    worker_failure_threshold: Count = 5
    worker_set_aside: Seconds = 300


def _default_worker_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


class WorkerType(StrEnum):
    LOCAL = "local"
    REMOTE = "remote"
    CONTAINER = "container"


def _default_worker_type() -> WorkerType:
    """What container engines leave behind tells that this is one."""
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    inside = any(mark.exists() for mark in marks) or "KUBERNETES_SERVICE_HOST" in os.environ
    return WorkerType.CONTAINER if inside else WorkerType.LOCAL


class WorkerTaint(Section):
    """Keeps executions away that do not tolerate it, or, with `prefer_no_schedule`, lets them come last."""

    key: Annotated[str, Field(min_length=1, max_length=255)]
    value: str | None = None
    effect: Literal["no_schedule", "prefer_no_schedule"] = "no_schedule"


class WorkerSettings(Section):
    """`/health` is answered at `health_host`:`health_port`; port 0 takes a free one, which `attune worker show` tells."""

    name: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        default_factory=_default_worker_name
    )
    heartbeat_interval: Seconds = 10
    shutdown_timeout: Seconds = 30
    capacity: Count = 10
    labels: dict[str, str] = {}
    taints: list[WorkerTaint] = []
    type: WorkerType = Field(default_factory=_default_worker_type)
    health_host: str = "127.0.0.1"
    health_port: Annotated[int, Field(ge=0, le=65535)] = 0


class PacksSettings(Section):
    dirs: list[Path] = []


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """`auto` is for people on a terminal and JSON elsewhere."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class LogSettings(Section):
    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


class Settings(Section):
    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Field(
        default=Path("~/.local/share/attune"), validate_default=True
    )
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    security: SecuritySettings = SecuritySettings()
    message_queue: MessageQueueSettings = MessageQueueSettings()
    redis: RedisSettings = RedisSettings()
    executor: ExecutorSettings = ExecutorSettings()
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    packs: PacksSettings = PacksSettings()
    log: LogSettings = LogSettings()

    @property
    def database_url(self) -> str:
        """The database's address, secrets included: for the driver, never for a log."""
        if self.database.url is None:
            return f"sqlite:///{self.data_dir / 'attune.db'}"
        return self.database.url.get_secret_value()

    @property
    def embedded(self) -> bool:
        """True on SQLite: one process is the whole system, and makes its own secrets."""
        return database_kind(self.database_url) is DatabaseKind.SQLITE

    @pydantic.model_validator(mode="after")
    def _redis_queues_need_redis(self) -> Self:
        if self.executor.queue.backend is QueueBackend.REDIS and self.redis.url is None:
            raise ValueError("executor.queue.backend is redis, so redis.url must be set")
        return self
