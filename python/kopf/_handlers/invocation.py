"""Calls of user functions: coroutines in the loop, others in the executor."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, final

if TYPE_CHECKING:
    from kopf._settings import configuration

_R = TypeVar("_R")
SyncOrAsync: TypeAlias = _R | Coroutine[None, None, _R]
Invokable = Callable[..., SyncOrAsync[object | None]]


class Kwargable:
    """Something with kwargs for functions."""

    @property
    def _super_kwargs(self) -> dict[str, Any]:
        """Kwargs that replace all others with the same names."""
        return {}

    @property
    def _kwargs(self) -> dict[str, Any]:
        """Kwargs of every function."""
        return {}

    @property
    def _async_kwargs(self) -> dict[str, Any]:
        """Those and the additional kwargs of coroutines."""
        return self._kwargs

    @property
    def _sync_kwargs(self) -> dict[str, Any]:
        """Those and the additional kwargs of functions in threads."""
        return self._kwargs

    @final
    @property
    def kwargs(self) -> dict[str, Any]:
        """Kwargs of filters and other callbacks."""
        return self._kwargs | self._super_kwargs

    @final
    @property
    def sync_kwargs(self) -> dict[str, Any]:
        """Kwargs of functions in threads."""
        return self._sync_kwargs | self._super_kwargs

    @final
    @property
    def async_kwargs(self) -> dict[str, Any]:
        """Kwargs of coroutines."""
        return self._async_kwargs | self._super_kwargs


class context:
    """Set context variables for a block of code."""

    def __init__(self, values: Iterable[tuple[contextvars.ContextVar[Any], Any]]) -> None:
        self._values = values
        self._tokens: list[tuple[contextvars.ContextVar[Any], contextvars.Token[Any]]] = []

    def __enter__(self) -> None:
        self._tokens = [(var, var.set(value)) for var, value in self._values]

    def __exit__(self, *_: object) -> None:
        for var, token in reversed(self._tokens):
            var.reset(token)


def is_async_fn(fn: Invokable | None) -> bool:
    """Whether a function is a coroutine function, also inside partials and wrappers."""
    while fn is not None:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif hasattr(fn, "__wrapped__"):
            fn = getattr(fn, "__wrapped__", None)
        else:
            return inspect.iscoroutinefunction(fn)
    return False


async def invoke(
    fn: Invokable,
    *,
    settings: configuration.OperatorSettings | None = None,
    kwargsrc: Kwargable | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Call a function with kwargs: a coroutine here, any other in the executor."""
    given = dict(kwargs or {})
    if is_async_fn(fn):
        if kwargsrc is not None:
            given |= kwargsrc.async_kwargs
        return await fn(**given)  # type: ignore[misc]
    if kwargsrc is not None:
        given |= kwargsrc.sync_kwargs
    executor = None if settings is None else settings.execution.executor
    ctx = contextvars.copy_context()
    call = functools.partial(ctx.run, functools.partial(fn, **given))
    return await _until_done(asyncio.get_running_loop().run_in_executor(executor, call))


async def _until_done(future: asyncio.Future[Any]) -> Any:
    """Wait for a thread; a cancellation takes effect when the thread is done.

    A thread cannot be stopped, and it must not be left alone: it occupies the executor.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as e:
            cancelled = e
    if cancelled is not None:
        raise cancelled
    return future.result()
