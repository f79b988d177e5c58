"""`client.auth`: one's own account. Whoever logs in or registers speaks with the new tokens from then on."""

from attune.client.accounts import CurrentUser, Tokens
from attune.client.calls import get, post
from attune.client.operations import Namespace, Operation, W


class Auth(Namespace[W]):
    @Operation
    async def login(self, login: str, password: str) -> Tokens:
        body = {"login": login, "password": password}
        return await self._session.adopt(post("/auth/login", Tokens, body, anonymous=True))

    @Operation
    async def register(
        self, login: str, password: str, *, display_name: str | None = None
    ) -> Tokens:
        body = {"login": login, "password": password, "display_name": display_name}
        return await self._session.adopt(post("/auth/register", Tokens, body, anonymous=True))

    @Operation
    async def refresh(self) -> Tokens:
        """New tokens for the refresh token that is held. A call that is refused with 401 does this by itself."""
        return await self._session.renew()

    @Operation
    async def me(self) -> CurrentUser:
        return await self._session.run(get("/auth/me", CurrentUser))
