"""Logging in, staying logged in, and changing one's account, on both databases."""

import random
from dataclasses import replace

import pytest
from pydantic import SecretStr

from attune.identities.accounts import Accounts, Registration
from attune.identities.model import Caller, Effective, TokenType
from attune.identities.passwords import Passwords
from attune.identities.tokens import ACCESS_SECONDS, REFRESH_SECONDS, Tokens
from attune.kernel.errors import Conflict, Forbidden, NotFound, Unauthenticated
from attune.kernel.ids import ActionDefinitionId, ExecutionId, IdentityId, Ids
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution
from attune.pipeline.executions.steps import move
from attune.simulation.clock import ManualClock
from attune.store import schema
from tests.contract.identities.rows import ask, load_core, run_sql

PASSWORD = SecretStr("correct horse")
OTHER = SecretStr("battery staple")
HASHES = "SELECT password_hash FROM identity ORDER BY id"


async def ann(accounts: Accounts) -> Caller:
    session = await accounts.register("ann", PASSWORD, "Ann Lee")
    return await accounts.caller(session.tokens.access_token)


async def test_who_registers_can_log_in(accounts: Accounts) -> None:
    registered = await accounts.register("ann", PASSWORD, "Ann Lee")
    logged_in = await accounts.login("ann", PASSWORD)
    assert logged_in.identity == registered.identity
    assert logged_in.identity.display_name == "Ann Lee"
    caller = await accounts.caller(logged_in.tokens.access_token)
    assert (caller.identity, caller.login) == (registered.identity.id, "ann")
    assert caller.permission_set_refs == ("core.admin",)


async def test_an_unknown_login_and_a_wrong_password_sound_alike(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    wrong = [("ann", OTHER), ("Ann", PASSWORD), ("nobody", PASSWORD), ("ann", SecretStr(""))]
    for login, password in [*wrong, ("ann\0", PASSWORD), ("x" * 10_000, PASSWORD)]:
        with pytest.raises(Unauthenticated, match=r"^The login or the password is wrong\.$"):
            await accounts.login(login, password)


async def test_letter_case_tells_logins_apart(accounts: Accounts) -> None:
    first = await accounts.register("ann", PASSWORD, None)
    second = await accounts.register("Ann", OTHER, None)
    assert first.identity.id != second.identity.id
    assert (await accounts.login("Ann", OTHER)).identity == second.identity


async def test_an_identity_without_a_password_cannot_log_in(accounts: Accounts) -> None:
    caller = await ann(accounts)
    await run_sql(accounts.database, "UPDATE identity SET password_hash = NULL")
    with pytest.raises(Unauthenticated):
        await accounts.login("ann", PASSWORD)
    assert not (await accounts.profile(caller)).has_password
    with pytest.raises(Unauthenticated):
        await accounts.change_password(caller, PASSWORD, OTHER)


async def test_a_closed_registration_refuses(accounts: Accounts) -> None:
    closed = replace(accounts, registration=Registration(is_open=False))
    with pytest.raises(Forbidden, match="closed"):
        await closed.register("ann", PASSWORD, None)
    assert await ask(accounts.database, "SELECT login FROM identity") == []


async def test_a_refresh_token_gives_new_tokens(accounts: Accounts, clock: ManualClock) -> None:
    first = (await accounts.register("ann", PASSWORD, None)).tokens
    await clock.advance(ACCESS_SECONDS)
    with pytest.raises(Unauthenticated):
        await accounts.caller(first.access_token)
    second = (await accounts.refresh(first.refresh_token)).tokens
    assert (await accounts.caller(second.access_token)).login == "ann"
    assert second.refresh_token != first.refresh_token
    await clock.advance(REFRESH_SECONDS - ACCESS_SECONDS)
    with pytest.raises(Unauthenticated):
        await accounts.refresh(first.refresh_token)
    assert (await accounts.refresh(second.refresh_token)).identity.login == "ann"


@pytest.mark.parametrize("change", ["DELETE FROM identity", "UPDATE identity SET frozen = true"])
async def test_tokens_end_with_their_identity(accounts: Accounts, change: str) -> None:
    tokens = (await accounts.register("ann", PASSWORD, None)).tokens
    assert (await accounts.caller(tokens.access_token)).login == "ann"
    await run_sql(accounts.database, change)
    with pytest.raises(Unauthenticated):
        await accounts.caller(tokens.access_token)
    with pytest.raises(Unauthenticated):
        await accounts.refresh(tokens.refresh_token)
    with pytest.raises(Unauthenticated):
        await accounts.login("ann", PASSWORD)


async def test_who_is_thawed_is_as_before(accounts: Accounts) -> None:
    tokens = (await accounts.register("ann", PASSWORD, None)).tokens
    await run_sql(accounts.database, "UPDATE identity SET frozen = true")
    await run_sql(accounts.database, "UPDATE identity SET frozen = false")
    assert (await accounts.caller(tokens.access_token)).login == "ann"


async def test_what_a_caller_holds_counts_at_once(accounts: Accounts) -> None:
    tokens = (await accounts.register("ann", PASSWORD, None)).tokens
    await run_sql(accounts.database, "DELETE FROM permission_assignment")
    assert (await accounts.caller(tokens.access_token)).permission_set_refs == ()


async def test_a_profile_shows_the_sets_and_their_rights(accounts: Accounts) -> None:
    grants = [{"resource": "packs", "actions": ["read", "create"]}]
    await load_core(accounts.database, "admin", grants=grants)
    profile = await accounts.profile(await ann(accounts))
    assert profile.permission_set_refs == ("core.admin",)
    assert profile.effective == (Effective("packs", ("create", "read")),)
    assert profile.has_password


async def test_the_token_of_an_execution_ends_with_it(accounts: Accounts) -> None:
    session = await accounts.register("ann", PASSWORD, None)
    named = {"execution_id": 7, "permission_set_refs": []}
    token = accounts.tokens.issue(
        session.identity.id, "execution:7", TokenType.EXECUTION, 3600, metadata=named
    )
    now = accounts.clock.now()
    execution = Execution(
        id=ExecutionId(7),
        action=None,
        action_ref="core.noop",
        definition=ActionDefinitionId(1),
        status=ExecutionStatus.RUNNING,
        created=now,
        updated=now,
    )
    await accounts.database.run(lambda tx: tx.insert(schema.execution, [execution]))
    assert (await accounts.caller(token)).login == "execution:7"
    ended, sources = ExecutionStatus.COMPLETED, [ExecutionStatus.RUNNING]
    await accounts.database.run(move, [execution.id], ended, sources, now)
    with pytest.raises(Unauthenticated, match="has ended"):
        await accounts.caller(token)


async def test_an_execution_sees_only_what_its_token_names(accounts: Accounts) -> None:
    await load_core(accounts.database, "admin", grants=[{"resource": "keys", "actions": ["read"]}])
    caller = await ann(accounts)
    token = accounts.tokens.issue(
        caller.identity,
        "execution:5",
        TokenType.EXECUTION,
        60,
        scope="execution",
        metadata={"execution_id": 5, "permission_set_refs": ["standard"]},
    )
    execution = await accounts.caller(token)
    assert (execution.login, execution.permission_set_refs) == ("execution:5", ("standard",))
    assert (await accounts.profile(execution)).effective == ()
    with pytest.raises(Forbidden):
        await accounts.rename(execution, "Mallory")
    with pytest.raises(Forbidden):
        await accounts.change_password(execution, PASSWORD, OTHER)


async def test_a_token_for_an_identity_that_never_was_is_refused(accounts: Accounts) -> None:
    token = accounts.tokens.issue(IdentityId(404), "ghost", TokenType.ACCESS, 60)
    with pytest.raises(Unauthenticated):
        await accounts.caller(token)


async def test_a_display_name_is_changed_and_cleared(
    accounts: Accounts, clock: ManualClock
) -> None:
    caller = await ann(accounts)
    await clock.advance(5)
    renamed = (await accounts.rename(caller, "Ann B. Lee")).identity
    assert renamed.display_name == "Ann B. Lee"
    assert (renamed.updated - renamed.created).total_seconds() == 5
    assert (await accounts.rename(caller, None)).identity.display_name is None


async def test_a_password_is_changed_by_who_knows_it(accounts: Accounts) -> None:
    caller = await ann(accounts)
    with pytest.raises(Unauthenticated, match="current password"):
        await accounts.change_password(caller, OTHER, OTHER)
    await accounts.change_password(caller, PASSWORD, OTHER)
    assert (await accounts.login("ann", OTHER)).identity.login == "ann"
    with pytest.raises(Unauthenticated):
        await accounts.login("ann", PASSWORD)


async def test_of_two_changes_at_once_the_later_is_told(accounts: Accounts) -> None:
    class Slow(Passwords):
        async def hash(self, password: str) -> str:
            await run_sql(accounts.database, "UPDATE identity SET password_hash = 'changed'")
            return await super().hash(password)

    caller = await ann(accounts)
    slow = replace(accounts, passwords=Slow(time_cost=1, memory_kib=64))
    with pytest.raises(Conflict, match="meanwhile"):
        await slow.change_password(caller, PASSWORD, OTHER)
    assert await ask(accounts.database, HASHES) == ["changed"]


async def test_a_login_renews_a_hash_of_old_parameters(accounts: Accounts) -> None:
    await accounts.register("ann", PASSWORD, None)
    [old] = await ask(accounts.database, HASHES)
    stronger = replace(accounts, passwords=Passwords(time_cost=2, memory_kib=128))
    with pytest.raises(Unauthenticated):
        await stronger.login("ann", OTHER)
    assert await ask(accounts.database, HASHES) == [old]
    await stronger.login("ann", PASSWORD)
    [new] = await ask(accounts.database, HASHES)
    assert "m=128,t=2" in new
    await stronger.login("ann", PASSWORD)
    assert await ask(accounts.database, HASHES) == [new]


async def test_who_is_gone_in_mid_request_is_not_found(accounts: Accounts) -> None:
    caller = await ann(accounts)
    await run_sql(accounts.database, "DELETE FROM identity")
    with pytest.raises(NotFound):
        await accounts.profile(caller)


async def test_another_secret_makes_all_tokens_void(accounts: Accounts, clock: ManualClock) -> None:
    tokens = (await accounts.register("ann", PASSWORD, None)).tokens
    assert (await accounts.caller(tokens.access_token)).login == "ann"
    renewed = Tokens(SecretStr("another secret"), clock, Ids(random.Random(2)))
    with pytest.raises(Unauthenticated):
        await replace(accounts, tokens=renewed).caller(tokens.access_token)
