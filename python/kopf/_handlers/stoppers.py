"""Stop flags of daemons and timers."""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

_Reason = TypeVar("_Reason", bound=enum.Flag)


class DaemonStoppingReason(enum.Flag):
    """Why a daemon is stopped; reasons can be combined."""

    DONE = enum.auto()
    FILTERS_MISMATCH = enum.auto()
    RESOURCE_DELETED = enum.auto()
    OPERATOR_PAUSING = enum.auto()
    OPERATOR_EXITING = enum.auto()
    DAEMON_SIGNALLED = enum.auto()
    DAEMON_CANCELLED = enum.auto()
    DAEMON_ABANDONED = enum.auto()


class FlagSetter(Generic[_Reason]):
    """The side of the flag that the framework has: it can be set, from the event loop only."""

    def __init__(self) -> None:
        super().__init__()
        self.when: float | None = None
        self._reason: _Reason | None = None
        self.sync_event = threading.Event()
        self.async_event = asyncio.Event()
        self.sync_waiter: SyncFlagWaiter[_Reason] = SyncFlagWaiter(self)
        self.async_waiter: AsyncFlagWaiter[_Reason] = AsyncFlagWaiter(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.is_set()}, reason={self.reason}>"

    @property
    def reason(self) -> _Reason | None:
        """All reasons so far."""
        return self._reason

    def is_set(self, reason: _Reason | None = None) -> bool:
        """Whether the flag is set, for any reason or for this one."""
        if not self.sync_event.is_set():
            return False
        return reason is None or (self.reason is not None and reason in self.reason)

    def set(self, reason: _Reason | None = None) -> None:
        """Set the flag, or add a reason to it."""
        if self.when is None:
            self.when = asyncio.get_running_loop().time()
        if reason is not None:
            self._reason = reason if self._reason is None else self._reason | reason
        self.sync_event.set()
        self.async_event.set()


class FlagWaiter(Generic[_Reason]):
    """The kwarg ``stopped``: true when the daemon has to end.

    ``stopped.wait(60)`` in threads, ``await stopped.wait(60)`` in coroutines.
    """

    def __init__(self, setter: FlagSetter[_Reason]) -> None:
        super().__init__()
        self._setter = setter

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.is_set()}, reason={self.reason}>"

    def __bool__(self) -> bool:
        return self._setter.is_set()

    def is_set(self) -> bool:
        return self._setter.is_set()

    @property
    def reason(self) -> _Reason | None:
        return self._setter.reason

    def wait(self, timeout: float | None = None) -> FlagWaiter[_Reason]:
        raise NotImplementedError("This flag can be checked but not waited for: use `is_set()`.")

    def __await__(self) -> Generator[None, None, FlagWaiter[_Reason]]:
        raise NotImplementedError(
            "Daemon stoppers should not be awaited directly. Use `await stopped.wait()`."
        )


class SyncFlagWaiter(FlagWaiter[_Reason], Generic[_Reason]):
    """The flag for functions in threads."""

    def wait(self, timeout: float | None = None) -> SyncFlagWaiter[_Reason]:
        self._setter.sync_event.wait(timeout=timeout)
        return self


class AsyncFlagWaiter(FlagWaiter[_Reason], Generic[_Reason]):
    """The flag for coroutines."""

    def wait(self, timeout: float | None = None) -> AsyncFlagPromise[_Reason]:
        return AsyncFlagPromise(self, timeout=timeout)


class AsyncFlagPromise(FlagWaiter[_Reason], Awaitable[AsyncFlagWaiter[_Reason]], Generic[_Reason]):
    """What ``stopped.wait(...)`` returns in coroutines: to be awaited."""

    def __init__(self, waiter: AsyncFlagWaiter[_Reason], *, timeout: float | None) -> None:
        super().__init__(waiter._setter)
        self._waiter = waiter
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, AsyncFlagWaiter[_Reason]]:
        return self._wait().__await__()

    async def _wait(self) -> AsyncFlagWaiter[_Reason]:
        event = self._setter.async_event
        if not event.is_set():
            waiting = asyncio.ensure_future(event.wait())
            try:
                await asyncio.wait({waiting}, timeout=self._timeout)
            finally:
                waiting.cancel()
        return self._waiter


DaemonStopper = FlagSetter[DaemonStoppingReason]
DaemonStopped = FlagWaiter[DaemonStoppingReason]
SyncDaemonStopperChecker = SyncFlagWaiter[DaemonStoppingReason]
AsyncDaemonStopperChecker = AsyncFlagWaiter[DaemonStoppingReason]
