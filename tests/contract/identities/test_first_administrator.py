"""There is one first administrator: the settings' one, or else whoever registers first."""

import asyncio
import random
from dataclasses import replace

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from attune.identities.accounts import Accounts, Registration
from attune.identities.administrator import FirstAdministrator
from attune.identities.assignments import take_first_place
from attune.kernel.clock import SystemClock
from attune.kernel.errors import Conflict, DuplicateRow, InvalidSettings
from attune.kernel.settings import SecuritySettings, Settings
from attune.store.database import Database, Tx
from attune.store.opening import database_from
from tests.contract.identities.rows import NOW, administrators, ask, load_core, run_sql

PASSWORD = SecretStr("correct horse")
GIVEN = SecuritySettings(admin_login="root", admin_password=PASSWORD)
NOT_GIVEN = SecuritySettings()
HELD = "SELECT permission_set_ref FROM permission_assignment a JOIN identity i ON i.id = a.identity"


async def start(accounts: Accounts, security: SecuritySettings) -> None:
    part = FirstAdministrator(accounts, security)
    await part.start()
    await part.stop()


async def test_the_settings_name_the_administrator(accounts: Accounts) -> None:
    await start(accounts, GIVEN)
    await start(accounts, GIVEN)
    assert await administrators(accounts.database) == ["root"]
    await accounts.register("ann", PASSWORD, None)
    assert await administrators(accounts.database) == ["root"]
    assert (await accounts.login("root", PASSWORD)).identity.login == "root"


async def test_without_settings_the_first_to_register_is_it(accounts: Accounts) -> None:
    await start(accounts, NOT_GIVEN)
    await accounts.register("ann", PASSWORD, None)
    await accounts.register("bob", PASSWORD, None)
    await start(accounts, GIVEN)
    assert await administrators(accounts.database) == ["ann"]
    assert await ask(accounts.database, f"{HELD} WHERE i.login = 'bob'") == ["core.viewer"]


async def test_of_many_that_register_at_once_one_is_administrator(accounts: Accounts) -> None:
    names = [f"user{number}" for number in range(12)]
    await asyncio.gather(*(accounts.register(name, PASSWORD, None) for name in names))
    assert len(await administrators(accounts.database)) == 1
    assert sorted(await ask(accounts.database, "SELECT login FROM identity")) == sorted(names)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_the_second_waits_for_the_commit_of_the_first(
    accounts: Accounts, settings: Settings
) -> None:
    """Two steps of two processes that overlap for certain; SQLite has one writer."""
    other = database_from(settings, SystemClock(), random.Random(2))
    await other.open()
    inside, leave = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        assert await take_first_place(tx, "holder", NOW)
        inside.set()
        await leave.wait()
        raise Conflict("changed its mind")

    holding = asyncio.create_task(other.run(hold))
    await inside.wait()
    second = asyncio.create_task(accounts.register("ann", PASSWORD, None))
    done, _ = await asyncio.wait({second}, timeout=0.3)
    assert not done
    leave.set()
    with pytest.raises(Conflict):
        await holding
    await second
    assert await administrators(accounts.database) == ["ann"]
    await other.close()


async def test_many_processes_that_start_at_once_make_one(accounts: Accounts) -> None:
    await asyncio.gather(*(start(accounts, GIVEN) for _ in range(6)))
    assert await administrators(accounts.database) == ["root"]


async def test_a_login_that_is_taken_does_not_take_the_first_place(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    await run_sql(accounts.database, "DELETE FROM first_administrator")
    with pytest.raises(DuplicateRow):
        await accounts.register("ann", PASSWORD, None)
    assert await ask(accounts.database, "SELECT login FROM first_administrator") == []


async def test_the_place_stays_taken_when_the_administrator_is_gone(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    await run_sql(accounts.database, "DELETE FROM identity")
    await accounts.register("bob", PASSWORD, None)
    assert await administrators(accounts.database) == []


async def test_the_settings_are_the_way_back_in(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    await run_sql(accounts.database, "DELETE FROM identity")
    with capture_logs() as logs:
        await asyncio.gather(*(start(accounts, GIVEN) for _ in range(4)))
    assert await administrators(accounts.database) == ["root"]
    made = [each for each in logs if each["event"] != "Default permission sets are not known yet."]
    assert [each["event"] for each in made] == ["Made the first administrator."]


async def test_the_way_back_in_gives_nothing_to_one_who_has_the_login(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    await accounts.register("root", SecretStr("of another"), None)
    await run_sql(accounts.database, "DELETE FROM identity WHERE login = 'ann'")
    with capture_logs() as logs:
        await start(accounts, GIVEN)
    assert await administrators(accounts.database) == []
    assert "taken by one who is no administrator" in logs[-1]["event"]


async def test_what_was_held_before_the_catalog_was_loaded_goes_with_its_set(
    accounts: Accounts,
) -> None:
    await accounts.register("ann", PASSWORD, None)
    await accounts.register("bob", PASSWORD, None)
    await load_core(accounts.database, "admin", "viewer", grants=[])
    await start(accounts, NOT_GIVEN)
    await run_sql(accounts.database, "DELETE FROM permission_set WHERE ref = 'core.viewer'")
    assert await ask(accounts.database, HELD) == ["core.admin"]


async def test_closed_without_an_administrator_is_told(accounts: Accounts) -> None:
    closed = replace(accounts, registration=Registration(is_open=False))
    with capture_logs() as logs:
        await start(closed, NOT_GIVEN)
    assert [each["log_level"] for each in logs] == ["warning"]
    assert "security.admin_login" in logs[0]["event"]


async def test_an_unknown_default_set_is_a_warning_before_the_catalog_is_loaded(
    accounts: Accounts,
) -> None:
    with capture_logs() as logs:
        await start(accounts, NOT_GIVEN)
    assert [each["permission_sets"] for each in logs] == [["core.viewer"]]


async def test_an_unknown_default_set_is_an_error_after_it(accounts: Accounts) -> None:
    await load_core(accounts.database, "admin", grants=[])
    with pytest.raises(InvalidSettings, match=r"default_permission_sets.*core\.viewer"):
        await start(accounts, NOT_GIVEN)


async def test_the_password_shows_nowhere(accounts: Accounts) -> None:
    with capture_logs() as logs:
        await start(accounts, GIVEN)
    assert PASSWORD.get_secret_value() not in str(logs)
    hashes = await ask(accounts.database, "SELECT password_hash FROM identity")
    assert [kept.startswith("$argon2id$") for kept in hashes] == [True]


async def test_several_registering_the_same_login_make_one(
    accounts: Accounts, database: Database
) -> None:
    outcomes = await asyncio.gather(
        *(accounts.register("ann", PASSWORD, None) for _ in range(8)), return_exceptions=True
    )
    refused = [each for each in outcomes if isinstance(each, BaseException)]
    assert len(refused) == 7
    assert all(isinstance(each, DuplicateRow) for each in refused)
    assert await ask(database, "SELECT login FROM identity") == ["ann"]
