"""How one method serves both clients.

A method of a namespace is written once, as a coroutine or an asynchronous generator. `Operation` and
`Listing` hand it out as that to `AsyncClient`, and as a plain function or iterator to `Client`; type
checkers see the right one of the two.
"""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from attune.client.session import Session
from attune.kernel.errors import StepMisuse

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """The way of `Client`: a call returns when its answer is there."""


class Awaiting:
    """The way of `AsyncClient`: a call is awaited."""


W = TypeVar("W", Blocking, Awaiting)


class Namespace(Generic[W]):
    """The operations on one kind of thing."""

    def __init__(self, session: Session, way: type[W]) -> None:
        self._session = session
        self._way: type[Blocking | Awaiting] = way

    @property
    def blocks(self) -> bool:
        return issubclass(self._way, Blocking)


class Operation(Generic[P, T]):
    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, namespace: None, owner: type) -> Self: ...
    @overload
    def __get__(self, namespace: Namespace[Blocking], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, namespace: Namespace[Awaiting], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, namespace: Namespace[Any] | None, owner: type) -> Any:
        if namespace is None:
            return self
        return _bound(self._method, namespace, run)


class Listing(Generic[P, T]):
    def __init__(self, method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, namespace: None, owner: type) -> Self: ...
    @overload
    def __get__(self, namespace: Namespace[Blocking], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(
        self, namespace: Namespace[Awaiting], owner: type
    ) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, namespace: Namespace[Any] | None, owner: type) -> Any:
        if namespace is None:
            return self
        return _bound(self._method, namespace, walk)


def _bound(
    method: Callable[..., Any], namespace: Namespace[Any], drive: Callable[[Any], Any]
) -> Callable[..., Any]:
    """The method of this namespace; driven to its end where the namespace blocks."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        work = method(namespace, *args, **kwargs)
        return drive(work) if namespace.blocks else work

    return call


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine over a `BlockingTransport` to its end, which takes one step."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise StepMisuse("A coroutine of the blocking client waits for an event loop.")


def walk(generator: AsyncGenerator[T, None]) -> Iterator[T]:
    """The same for a generator; leaving it early closes what it holds open."""
    try:
        while True:
            try:
                yield run(_next(generator))
            except StopAsyncIteration:
                return
    finally:
        run(_close(generator))


async def _next(generator: AsyncGenerator[T, None]) -> T:
    return await anext(generator)


async def _close(generator: AsyncGenerator[Any, None]) -> None:
    await generator.aclose()
