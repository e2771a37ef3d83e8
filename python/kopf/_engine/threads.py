"""Functions in threads: many of them may end before the loop is woken once."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopf import _native


class _Job:
    """A function that runs, and the call that waits for it."""

    __slots__ = ("is_over", "waiter")

    def __init__(self, waiter: asyncio.Future[None]) -> None:
        self.waiter = waiter
        self.is_over = False


class Threads:
    """Runs functions in executors for the calls of one loop."""

    def __init__(self, native: _native.Operator) -> None:
        super().__init__()
        self._native = native
        self._loop = asyncio.get_running_loop()
        self._ended: collections.deque[_Job] = collections.deque()
        self._is_waking = False

    async def run(self, executor: concurrent.futures.Executor, fn: Callable[[], object]) -> object:
        """Run a function in the current context; a cancellation takes effect when it is done.

        A thread cannot be stopped, and it must not be left alone: it occupies the executor.
        """
        future = executor.submit(contextvars.copy_context().run, fn)
        job = _Job(self._loop.create_future())
        future.add_done_callback(lambda _: self._end(job))
        cancelled: asyncio.CancelledError | None = None
        while not job.is_over:
            try:
                await job.waiter
            except asyncio.CancelledError as e:
                cancelled = e
                job.waiter = self._loop.create_future()
        if cancelled is not None:
            raise cancelled
        if future.cancelled():
            raise asyncio.CancelledError
        return future.result()

    def _end(self, job: _Job) -> None:
        """Tell the loop; called in the thread of the function."""
        self._ended.append(job)
        if self._is_waking:
            return
        self._is_waking = True
        try:
            self._loop.call_soon_threadsafe(self._resume)
        except RuntimeError:
            pass  # the loop is closed: the result is not needed any more

    def _resume(self) -> None:
        """Continue all calls whose functions have ended, and give them back together."""
        # First: what ends from now on wakes the loop again.
        self._is_waking = False
        self._native.hold()
        while self._ended:
            job = self._ended.popleft()
            job.is_over = True
            if not job.waiter.done():
                job.waiter.set_result(None)
        self._loop.call_soon(self._native.release)
