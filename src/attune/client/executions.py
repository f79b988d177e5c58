"""`client.executions`: running actions, and following them to their end."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Unpack

from attune.client.calls import post
from attune.client.collection import Collection
from attune.client.logs import log_pieces
from attune.client.models import Execution, ExecutionSummary, Page
from attune.client.operations import Listing, Operation, W
from attune.client.requests import ExecutionFilters, ExecutionOptions, ExecutionRequest
from attune.client.waiting import Watch
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus

_EXECUTIONS = list[Execution]


class Executions(Collection[W, ExecutionSummary, Execution]):
    noun: ClassVar[str] = "executions"
    summary: ClassVar[type[Any]] = ExecutionSummary
    detail: ClassVar[type[Any]] = Execution

    @Operation
    async def execute(
        self,
        action_ref: str,
        parameters: Mapping[str, Any] | None = None,
        **options: Unpack[ExecutionOptions],
    ) -> Execution:
        """Ask for an execution; `wait` follows it. With an `idempotency_key` it runs once, however often it is sent."""
        body = {"action_ref": action_ref, "parameters": parameters or {}, **options}
        repeatable = "idempotency_key" in options
        call = post(self._path("execute"), Execution, body, repeatable=repeatable)
        return await self._session.run(call)

    @Operation
    async def execute_many(self, executions: Sequence[ExecutionRequest]) -> Sequence[Execution]:
        """Up to 10,000, all or none."""
        body = {"executions": list(executions)}
        repeatable = all("idempotency_key" in each for each in executions)
        call = post(self._path("execute-many"), _EXECUTIONS, body, repeatable=repeatable)
        return await self._session.run(call)

    @Operation
    async def list(self, **filters: Unpack[ExecutionFilters]) -> Page[ExecutionSummary]:
        """Newest first."""
        return await self._page(filters)

    @Listing
    async def iterate(
        self, **filters: Unpack[ExecutionFilters]
    ) -> AsyncGenerator[ExecutionSummary, None]:
        async for item in self._all(filters):
            yield item

    @Operation
    async def cancel(self, id_: int) -> Execution:
        return await self._session.run(post(self._path(id_, "cancel"), Execution))

    @Operation
    async def wait(
        self,
        id_: int,
        *,
        timeout: float | None = None,
        on_status: Callable[[ExecutionStatus], None] = lambda _status: None,
    ) -> Execution:
        """The execution when it has ended, however it did; `NotFinished` after `timeout` seconds.

        `on_status` is told of each status on the way that was seen.
        """
        watch = Watch(self._session, ExecutionId(id_), timeout=timeout, on_status=on_status)
        return await watch.until_finished()

    @Listing
    async def logs(
        self, id_: int, *, stream: str = "stdout", follow: bool = False
    ) -> AsyncGenerator[str, None]:
        """What it wrote to `stdout` or `stderr`, in pieces; with `follow` until it has ended."""
        pieces = log_pieces(self._session, ExecutionId(id_), stream, follow=follow)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    @Operation
    async def of_enforcement(self, enforcement: int) -> Sequence[ExecutionSummary]:
        """Those that an enforcement asked for."""
        return (await self._page({"enforcement": enforcement})).items
