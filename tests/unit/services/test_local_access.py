"""The way in for commands of this machine: there while `attune up` runs, and nobody's way to more than that."""

import random
import stat
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from attune.client import find_server
from attune.identities.accounts import Accounts, Registration
from attune.identities.administrator import FirstAdministrator
from attune.identities.model import ADMINISTRATOR, LOCAL_OPERATOR
from attune.identities.passwords import Passwords
from attune.identities.tokens import Tokens
from attune.kernel.clock import SystemClock
from attune.kernel.configuration import load_settings
from attune.kernel.errors import Unauthenticated
from attune.kernel.ids import Ids
from attune.kernel.settings import SecuritySettings
from attune.services.local_access import LocalAccess
from attune.services.local_file import local_file, read_local
from attune.simulation.clock import ManualClock
from attune.store import migrate
from attune.store.database import Database
from attune.store.opening import database_from
from tests.contract.identities.rows import administrators

URL = "http://127.0.0.1:4711"
PASSWORD = SecretStr("open sesame")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    settings = load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def accounts(database: Database, clock: ManualClock) -> Accounts:
    return Accounts(
        database=database,
        passwords=Passwords(time_cost=1, memory_kib=64),
        tokens=Tokens(SecretStr("a secret of the tests"), clock, Ids(random.Random(1))),
        clock=clock,
        registration=Registration(is_open=True),
    )


@pytest.fixture
def part(accounts: Accounts, tmp_path: Path) -> LocalAccess:
    return LocalAccess(accounts.database, accounts.clock, accounts.tokens, tmp_path, lambda: URL)


def token_in(folder: Path) -> str:
    found = read_local(folder)
    assert found is not None
    assert found.url == URL
    assert found.token not in repr(found)
    return found.token


async def test_while_it_runs_the_file_lets_one_in_as_an_administrator(
    part: LocalAccess, accounts: Accounts, tmp_path: Path
) -> None:
    await part.start()
    assert stat.S_IMODE(local_file(tmp_path).stat().st_mode) == 0o600
    caller = await accounts.caller(token_in(tmp_path))
    assert (caller.login, caller.permission_set_refs) == (LOCAL_OPERATOR, (ADMINISTRATOR,))
    profile = await accounts.profile(caller)
    assert (profile.identity.display_name, profile.has_password) == ("Local operator", False)
    await part.stop()
    assert not local_file(tmp_path).exists()
    await part.stop()


async def test_the_client_finds_it(part: LocalAccess, tmp_path: Path) -> None:
    await part.start()
    environ = {"HOME": str(tmp_path / "home"), "ATTUNE__DATA_DIR": str(tmp_path)}
    server = find_server(environ)
    assert (server.url, server.access_token) == (URL, token_in(tmp_path))
    await part.stop()
    assert find_server(environ).access_token is None


async def test_it_comes_back_as_the_same_identity(
    part: LocalAccess, accounts: Accounts, tmp_path: Path
) -> None:
    await part.start()
    first = await accounts.caller(token_in(tmp_path))
    await part.stop()
    await part.start()
    again = await accounts.caller(token_in(tmp_path))
    await part.stop()
    assert again.identity == first.identity


async def test_the_first_to_register_is_administrator_all_the_same(
    part: LocalAccess, accounts: Accounts
) -> None:
    await part.start()
    await accounts.register("ann", PASSWORD, None)
    await accounts.register("bob", PASSWORD, None)
    assert await administrators(accounts.database) == ["ann", LOCAL_OPERATOR]
    await part.stop()
    assert await administrators(accounts.database) == ["ann"]


async def test_an_operator_left_behind_by_a_killed_process_is_no_administrator(
    part: LocalAccess, accounts: Accounts
) -> None:
    await part.start()
    given = SecuritySettings(admin_login="root", admin_password=PASSWORD)
    await FirstAdministrator(accounts, given).start()
    assert await administrators(accounts.database) == [LOCAL_OPERATOR, "root"]
    await part.stop()


async def test_the_administrator_of_the_settings_is_made_at_a_later_start(
    part: LocalAccess, accounts: Accounts
) -> None:
    await part.start()
    await part.stop()
    given = SecuritySettings(admin_login="root", admin_password=PASSWORD)
    await FirstAdministrator(accounts, given).start()
    assert await administrators(accounts.database) == ["root"]


async def test_nobody_can_log_in_as_the_operator(part: LocalAccess, accounts: Accounts) -> None:
    await part.start()
    with pytest.raises(Unauthenticated):
        await accounts.login(LOCAL_OPERATOR, SecretStr(""))
    await part.stop()


async def test_one_who_registered_that_login_is_given_nothing(
    part: LocalAccess, accounts: Accounts, tmp_path: Path
) -> None:
    await accounts.register("ann", PASSWORD, None)
    await accounts.register(LOCAL_OPERATOR, PASSWORD, None)
    with capture_logs() as logs:
        await part.start()
    assert [each["log_level"] for each in logs] == ["warning"]
    assert await administrators(accounts.database) == ["ann"]
    assert not local_file(tmp_path).exists()
    await part.stop()


async def test_the_token_is_renewed_long_before_it_ends(
    part: LocalAccess, accounts: Accounts, clock: ManualClock, tmp_path: Path
) -> None:
    await part.start()
    first = token_in(tmp_path)
    await part.run_once()
    assert token_in(tmp_path) == first
    await clock.advance(timedelta(days=1, seconds=1).total_seconds())
    await part.run_once()
    assert token_in(tmp_path) != first
    await clock.advance(timedelta(days=28).total_seconds())
    assert (await accounts.caller(first)).login == LOCAL_OPERATOR
    await part.stop()
