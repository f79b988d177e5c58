"""Settings come from file and environment; what is not known or not valid is refused by name."""

import re
from pathlib import Path

import pytest

from attune.kernel.configuration import known_variables, load_settings
from attune.kernel.errors import InvalidSettings
from attune.kernel.settings import LogFormat, QueueBackend


def write(folder: Path, text: str) -> Path:
    file = folder / "config.yaml"
    file.write_text(text)
    return file


def test_every_default_is_that_of_the_specification() -> None:
    settings = load_settings({})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.database.max_connections == 20
    assert settings.database_url.endswith("/attune.db")
    assert settings.embedded
    assert settings.message_queue.url is None
    assert settings.message_queue.exchange == "attune.executions"
    assert settings.message_queue.prefetch_count == 10
    assert settings.message_queue.message_ttl == 3600
    assert settings.executor.queue.backend is QueueBackend.DATABASE
    assert settings.executor.queue.max_queue_length == 10000
    assert settings.executor.queue.queue_timeout_seconds == 3600
    assert settings.executor.queue.enable_metrics is True
    assert settings.executor.scheduled_timeout == 300
    assert settings.executor.timeout_check_interval == 60
    assert settings.executor.worker_queue_ttl == 300
    assert settings.executor.health_check_interval == 30
    assert settings.executor.no_worker_grace == 0
    assert re.fullmatch(r".+-\d+", settings.worker.name)
    assert (settings.worker.heartbeat_interval, settings.worker.shutdown_timeout) == (10, 30)
    assert (settings.worker.capacity, settings.worker.labels) == (10, {})
    assert settings.worker.taints == []
    assert settings.security.default_permission_sets == []
    assert settings.log.format is LogFormat.AUTO


def test_the_environment_overrides_the_file_and_the_command_line_both(tmp_path: Path) -> None:
    file = write(
        tmp_path, "executor:\n  queue:\n    max_queue_length: 1\n    queue_timeout_seconds: 2\n"
    )
    environ = {
        "ATTUNE__EXECUTOR__QUEUE__MAX_QUEUE_LENGTH": "5000",
        "ATTUNE__DATABASE__URL": "postgresql://prod-db/attune",
        "ATTUNE_API_URL": "not ours",
        "PATH": "/bin",
    }
    settings = load_settings(environ, file, {"server.port": 9000, "server.host": None})
    assert settings.executor.queue.max_queue_length == 5000
    assert settings.executor.queue.queue_timeout_seconds == 2
    assert settings.database_url == "postgresql://prod-db/attune"
    assert not settings.embedded
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 9000)


def test_maps_and_lists_are_json_in_the_environment() -> None:
    environ = {
        "ATTUNE__WORKER__LABELS": '{"zone": "north"}',
        "ATTUNE__SECURITY__DEFAULT_PERMISSION_SETS": '["core.viewer"]',
    }
    settings = load_settings(environ)
    assert settings.worker.labels == {"zone": "north"}
    assert settings.security.default_permission_sets == ["core.viewer"]
    with pytest.raises(InvalidSettings, match="ATTUNE__WORKER__LABELS must be JSON"):
        load_settings({"ATTUNE__WORKER__LABELS": "zone=north"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "executor:\n  queue:\n    max_queue_lenght: 5\n",
            "executor.queue.max_queue_lenght; did you mean executor.queue.max_queue_length",
        ),
        ("databse:\n  url: x\n", "databse.url; did you mean database.url"),
        ("server: {port: 70000}\n", "server.port: .*less than or equal to 65535"),
        ("server: {port: many}\n", "server.port: .*integer"),
        ("executor: {scheduled_timeout: 0}\n", "executor.scheduled_timeout: .*greater than 0"),
        ("log: {level: loud}\n", "log.level: .*'debug', 'info', 'warning' or 'error'"),
        (
            "database: {url: 'mysql://secret@host/x'}\n",
            "database.url: must start with postgresql://",
        ),
        ("executor: {queue: {backend: redis}}\n", "redis.url must be set"),
        ("server: [1, 2]\n", "server: "),
        ("- a\n", "must hold a map"),
        ("server: {port: [\n", "not valid YAML at line 2"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=words) as refusal:
        load_settings({}, write(tmp_path, text))
    assert "secret" not in str(refusal.value)


def test_an_unknown_variable_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidSettings, match="did you mean ATTUNE__SERVER__PORT"):
        load_settings({"ATTUNE__SERVER__PROT": "1"})


def test_a_value_under_a_section_that_is_no_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="server"):
        load_settings({"ATTUNE__SERVER__PORT": "1"}, write(tmp_path, "server: here\n"))


def test_a_missing_file_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"nowhere\.yaml cannot be read: No such file"):
        load_settings({}, tmp_path / "nowhere.yaml")


def test_an_empty_file_and_an_empty_section_mean_the_defaults(tmp_path: Path) -> None:
    assert load_settings({}, write(tmp_path, "")).server.port == 8080
    assert load_settings({}, write(tmp_path, "executor: {}\n")).executor.scheduled_timeout == 300


def test_secrets_do_not_show() -> None:
    environ = {
        "ATTUNE__DATABASE__URL": "postgresql://u:sesame@db/attune",
        "ATTUNE__SECURITY__JWT_SECRET": "sesame",
        "ATTUNE__MESSAGE_QUEUE__URL": "amqp://u:sesame@mq/",
    }
    assert "sesame" not in repr(load_settings(environ))
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({**environ, "ATTUNE__DATABASE__URL": "sesame://u:sesame@db/x"})
    assert "sesame" not in str(refusal.value)


def test_an_empty_secret_is_no_secret() -> None:
    with pytest.raises(InvalidSettings, match=r"security\.jwt_secret: .*at least 1"):
        load_settings({"ATTUNE__SECURITY__JWT_SECRET": ""})


def test_the_known_variables_are_those_that_are_read() -> None:
    assert "ATTUNE__EXECUTOR__QUEUE__MAX_QUEUE_LENGTH" in known_variables()
    assert "ATTUNE__DATABASE__URL" in known_variables()
    assert "ATTUNE__DATA_DIR" in known_variables()
