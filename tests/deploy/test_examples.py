"""The example configuration must be one that starts, once its secrets are filled in."""

from pathlib import Path

from attune.kernel.configuration import known_variables, load_settings
from attune.kernel.settings import WorkerSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
SECRETS = {
    "ATTUNE__DATABASE__URL": "postgresql://attune:word@db/attune",
    "ATTUNE__MESSAGE_QUEUE__URL": "amqp://attune:word@mq/",
    "ATTUNE__SECURITY__JWT_SECRET": "0" * 64,
    "ATTUNE__SECURITY__ENCRYPTION_KEY": "0" * 64,
}


def assignments(*, commented: bool) -> dict[str, str]:
    lines = (DEPLOY / "attune.env.example").read_text().splitlines()
    mark = "#ATTUNE" if commented else "ATTUNE"
    wanted = [line.lstrip("#") for line in lines if line.startswith(mark)]
    return {name: value for name, _, value in (line.partition("=") for line in wanted)}


def test_the_example_environment_names_settings_and_holds_no_secret() -> None:
    given, offered = assignments(commented=False), assignments(commented=True)

    assert given.keys() == SECRETS.keys()
    assert given.keys() | offered.keys() <= known_variables()
    assert set(given.values()) | set(offered.values()) == {""}


def test_the_example_configuration_can_be_used() -> None:
    settings = load_settings(SECRETS, DEPLOY / "config.example.yaml")

    assert not settings.embedded
    assert settings.worker.shutdown_timeout == WorkerSettings().shutdown_timeout
