"""Where one has logged in: tokens by server, in a file that nobody else can read."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from attune.client.accounts import Tokens
from attune.kernel.errors import InvalidInput
from attune.services.local_file import write_private


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    login: str
    access_token: str
    refresh_token: str

    def __repr__(self) -> str:
        return f"Profile({self.login!r})"


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """`current` is the server that was logged in to last, and what a command means that names none."""

    current: str | None = None
    servers: dict[str, Profile] = {}


class Profiles:
    def __init__(self, file: Path) -> None:
        self.file = file

    def current(self) -> str | None:
        return self._read().current

    def of(self, url: str) -> Profile | None:
        return self._read().servers.get(url)

    def keep(self, url: str, tokens: Tokens, login: str) -> None:
        """After a login: this server is the current one."""
        profile = Profile(
            login=login, access_token=tokens.access_token, refresh_token=tokens.refresh_token
        )
        self._write(_Kept(current=url, servers={**self._read().servers, url: profile}))

    def renew(self, url: str, tokens: Tokens) -> None:
        """After a refresh; which server is current stays. One that was logged out of meanwhile stays so."""
        kept = self._read()
        if url not in kept.servers:
            return
        renewed = msgspec.structs.replace(
            kept.servers[url],
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
        )
        self._write(_Kept(current=kept.current, servers={**kept.servers, url: renewed}))

    def forget(self, url: str) -> bool:
        """Whether there was anything to forget."""
        kept = self._read()
        if url not in kept.servers:
            return False
        others = {each: profile for each, profile in kept.servers.items() if each != url}
        current = None if kept.current == url else kept.current
        self._write(_Kept(current=current, servers=others))
        return True

    def _read(self) -> _Kept:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return _Kept()
        except OSError as error:
            sentence = f"The login profile {self.file} cannot be read: {error.strerror}."
            raise InvalidInput(sentence, file=str(self.file)) from error
        except msgspec.MsgspecError:
            sentence = f"The login profile {self.file} is broken; remove it and log in again."
            raise InvalidInput(sentence, file=str(self.file)) from None

    def _write(self, kept: _Kept) -> None:
        try:
            write_private(self.file, msgspec.json.encode(kept))
        except OSError as error:
            sentence = f"The login profile {self.file} cannot be written: {error.strerror}."
            raise InvalidInput(sentence, file=str(self.file)) from error


def profiles_of(environ: Mapping[str, str]) -> Profiles:
    home = Path(environ.get("HOME") or Path.home())
    chosen = Path(environ.get("XDG_CONFIG_HOME") or "")
    folder = chosen if chosen.is_absolute() else home / ".config"  # as the XDG rules have it
    return Profiles(folder / "attune" / "credentials.json")
