"""Which server is meant, and with which token, for whoever names neither.

In this order: what was named (`--url`, ATTUNE_URL), where one logged in last, the `attune up` of this
machine, the address that the settings' variables or their defaults give. A token that is kept for one
server is never shown to another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attune.client.profiles import Profiles, profiles_of
from attune.kernel.errors import InvalidInput
from attune.services.local_file import LocalServer, local_file, read_local

DEFAULT_DATA_DIR: Final = "~/.local/share/attune"
DEFAULT_PORT: Final = "8080"
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what to call, not to bind


@dataclass(frozen=True)
class Server:
    """`origin` tells a person where the address came from."""

    url: str
    origin: str = "the given url"
    access_token: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    login: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", plain_url(self.url))


def plain_url(url: str) -> str:
    """One spelling of an address: with a scheme, without a slash at its end."""
    url = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(f"{url} is not an address such as http://host:8080.", field="url")
    return url.rstrip("/")


def find_server(
    environ: Mapping[str, str], *, url: str | None = None, data_dir: Path | None = None
) -> Server:
    profiles = profiles_of(environ)
    folder = data_dir or _data_dir(environ)
    local = read_local(folder)
    found, origin = _address(environ, url, profiles, folder, local)
    found = plain_url(found)
    given = environ.get("ATTUNE_TOKEN")
    if given:
        return Server(found, origin, given)
    profile = profiles.of(found)
    if profile is not None:
        return Server(found, origin, profile.access_token, profile.refresh_token, profile.login)
    if local is not None and plain_url(local.url) == found:
        return Server(found, origin, local.token)
    return Server(found, origin)


def _address(
    environ: Mapping[str, str],
    url: str | None,
    profiles: Profiles,
    folder: Path,
    local: LocalServer | None,
) -> tuple[str, str]:
    if url:
        return url, "--url"
    if environ.get("ATTUNE_URL"):
        return environ["ATTUNE_URL"], "ATTUNE_URL"
    current = profiles.current()
    if current is not None:
        return current, "where you logged in"
    if local is not None:
        return local.url, f"from {local_file(folder)}"
    return _of_settings(environ)


def _data_dir(environ: Mapping[str, str]) -> Path:
    return Path(_setting(environ, "ATTUNE__DATA_DIR") or DEFAULT_DATA_DIR).expanduser()


def _of_settings(environ: Mapping[str, str]) -> tuple[str, str]:
    port = _setting(environ, "ATTUNE__SERVER__PORT")
    host = _setting(environ, "ATTUNE__SERVER__HOST") or "127.0.0.1"
    host = _ANY_ADDRESS.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    origin = "ATTUNE__SERVER__PORT" if port else "the default address"
    return f"http://{shown}:{port or DEFAULT_PORT}", origin


def _setting(environ: Mapping[str, str], name: str) -> str | None:
    """Their letter case does not count, as everywhere in the settings."""
    return next((value for key, value in environ.items() if key.upper() == name and value), None)
