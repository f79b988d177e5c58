"""Which server and token are used where nobody names them, and where tokens are kept."""

import stat
from pathlib import Path

import msgspec
import pytest

from attune.client import Client, find_server
from attune.client.accounts import Tokens
from attune.client.profiles import Profiles, profiles_of
from attune.client.servers import DEFAULT_DATA_DIR, DEFAULT_PORT
from attune.kernel.errors import InvalidInput
from attune.kernel.settings import Settings
from attune.services.local_file import LocalServer, local_file, read_local, write_private

TOKENS = Tokens(access_token="of-login", refresh_token="to-renew", expires_in=1)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "ATTUNE__DATA_DIR": str(tmp_path / "data")}


def run_up(environ: dict[str, str], url: str = "http://127.0.0.1:4711") -> None:
    """What a running `attune up` leaves in its data directory."""
    file = local_file(Path(environ["ATTUNE__DATA_DIR"]))
    write_private(file, msgspec.json.encode(LocalServer(url, "of-up")))


def log_in(environ: dict[str, str], url: str = "https://prod.example") -> Profiles:
    profiles = profiles_of(environ)
    profiles.keep(url, TOKENS, "ann")
    return profiles


def test_the_order_is_named_then_logged_in_then_local_then_default(
    environ: dict[str, str],
) -> None:
    found = find_server(environ)
    assert (found.url, found.origin) == ("http://127.0.0.1:8080", "the default address")
    assert found.access_token is None
    run_up(environ)
    found = find_server(environ)
    assert (found.url, found.access_token) == ("http://127.0.0.1:4711", "of-up")
    assert "local.json" in found.origin
    log_in(environ)
    found = find_server(environ)
    assert (found.url, found.access_token) == ("https://prod.example", "of-login")
    assert (found.refresh_token, found.login) == ("to-renew", "ann")
    environ["ATTUNE_URL"] = "http://named.example/"
    found = find_server(environ)
    assert (found.url, found.origin, found.access_token) == (
        "http://named.example",
        "ATTUNE_URL",
        None,
    )
    found = find_server(environ, url="other.example:99")
    assert (found.url, found.origin) == ("http://other.example:99", "--url")


def test_a_token_goes_only_to_the_server_that_it_is_of(environ: dict[str, str]) -> None:
    run_up(environ)
    log_in(environ)
    assert find_server(environ, url="http://127.0.0.1:4711/").access_token == "of-up"
    assert find_server(environ, url="https://prod.example").access_token == "of-login"
    assert find_server(environ, url="https://evil.example").access_token is None


def test_a_given_token_goes_before_every_kept_one(environ: dict[str, str]) -> None:
    log_in(environ)
    found = find_server({**environ, "ATTUNE_TOKEN": "given"})
    assert (found.url, found.access_token) == ("https://prod.example", "given")
    assert found.refresh_token is None


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"ATTUNE__SERVER__PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"attune__server__port": "9000"}, "http://127.0.0.1:9000"),
        ({"ATTUNE__SERVER__HOST": "0.0.0.0"}, "http://127.0.0.1:8080"),  # noqa: S104
        ({"ATTUNE__SERVER__HOST": "::1"}, "http://[::1]:8080"),
    ],
)
def test_the_variables_of_the_settings_tell_where_the_server_listens(
    environ: dict[str, str], variables: dict[str, str], url: str
) -> None:
    assert find_server({**environ, **variables}).url == url


def test_the_defaults_are_those_of_the_settings() -> None:
    assert Path(DEFAULT_DATA_DIR).expanduser() == Settings().data_dir
    assert str(Settings().server.port) == DEFAULT_PORT


def test_a_data_directory_can_be_named(environ: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_private(local_file(other), msgspec.json.encode(LocalServer("http://127.0.0.1:1", "t")))
    assert find_server(environ, data_dir=other).url == "http://127.0.0.1:1"


def test_a_broken_local_file_is_none(environ: dict[str, str], tmp_path: Path) -> None:
    write_private(local_file(tmp_path), b"{")
    assert read_local(tmp_path) is None


def test_the_profile_is_private_and_keeps_several_servers(environ: dict[str, str]) -> None:
    profiles = log_in(environ)
    log_in(environ, "https://test.example")
    assert stat.S_IMODE(profiles.file.stat().st_mode) == 0o600
    assert [each.name for each in profiles.file.parent.iterdir()] == ["credentials.json"]
    assert profiles.current() == "https://test.example"
    assert profiles.forget("https://test.example")
    assert not profiles.forget("https://test.example")
    assert profiles.current() is None
    kept = profiles.of("https://prod.example")
    assert kept is not None
    assert "of-login" not in repr(kept)


def test_the_folder_of_settings_follows_the_desktop_rules(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert profiles_of(home).file == tmp_path / ".config/attune/credentials.json"
    chosen = {**home, "XDG_CONFIG_HOME": str(tmp_path / "x")}
    assert profiles_of(chosen).file == tmp_path / "x/attune/credentials.json"
    assert profiles_of({**home, "XDG_CONFIG_HOME": "x"}) != profiles_of(chosen)
    assert profiles_of({**home, "XDG_CONFIG_HOME": "x"}).file == profiles_of(home).file


def test_renewed_tokens_go_back_to_the_profile(environ: dict[str, str]) -> None:
    profiles = log_in(environ)
    log_in(environ, "https://test.example")
    renewed = Tokens(access_token="later", refresh_token="later-still", expires_in=1)
    profiles.renew("https://prod.example", renewed)
    assert find_server(environ, url="https://prod.example").access_token == "later"
    assert profiles.current() == "https://test.example"
    profiles.forget("https://prod.example")
    profiles.renew("https://prod.example", renewed)
    assert profiles.of("https://prod.example") is None


def test_a_broken_profile_is_told_and_not_overwritten(environ: dict[str, str]) -> None:
    profiles = log_in(environ)
    profiles.file.write_text("{")
    with pytest.raises(InvalidInput, match="is broken; remove it and log in again"):
        find_server(environ)
    with pytest.raises(InvalidInput):
        profiles.keep("https://x.example", TOKENS, "ann")
    assert profiles.file.read_text() == "{"


def test_a_client_of_the_environment_speaks_to_that_server(environ: dict[str, str]) -> None:
    run_up(environ)
    with Client.from_environment(environ) as client:
        assert client.server.url == "http://127.0.0.1:4711"


@pytest.mark.parametrize("url", ["ftp://x", "http://[broken", "http://x:port", "http://", "x:0"])
def test_what_is_no_address_is_told(environ: dict[str, str], url: str) -> None:
    with pytest.raises(InvalidInput, match="is not an address such as http://host:8080"):
        find_server(environ, url=url)
