"""Webhook servers as context managers."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeVar

from kopf._structs import reviews

_ServerT = TypeVar("_ServerT", bound="WebhookContextManager")
_Configs = AsyncIterator[reviews.WebhookClientConfig]


class WebhookContextManager:
    """Closes the generators of ``__call__`` at the end of ``async with server:``.

    A server works without it too, but then it stops only when its generator is collected.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = _remembered(cls.__call__)  # type: ignore[attr-defined,method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._generators: list[AsyncGenerator[reviews.WebhookClientConfig, None]] = []

    async def __aenter__(self: _ServerT) -> _ServerT:
        return self

    async def __aexit__(self, *_: Any) -> None:
        while self._generators:
            await self._generators.pop().aclose()


def _remembered(call: Callable[..., _Configs]) -> Callable[..., _Configs]:
    """Make ``__call__`` remember its generators while they are in use."""

    @functools.wraps(call)
    async def wrapper(self: WebhookContextManager, fn: reviews.WebhookFn) -> _Configs:
        iterator = call(self, fn)
        if isinstance(iterator, AsyncGenerator):
            self._generators.append(iterator)
        async for config in iterator:
            yield config
        if iterator in self._generators:
            self._generators.remove(iterator)  # type: ignore[arg-type]

    return wrapper
