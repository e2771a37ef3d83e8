"""Calls of handlers, finished with a result or an error.

Calls are begun one after another by a task that is the worker at the moment. A call that waits for
something keeps the task for itself, and another task becomes the worker. So most calls need no
task of their own, and yet ``asyncio.current_task()`` is what handlers expect. Each call has a
context of its own.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import datetime
import functools
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any

from kopf._engine import declaring, owned
from kopf._engine.causes import CauseMaker
from kopf._engine.indexes import Index
from kopf._engine.kwargs import KwargsMaker
from kopf._engine.logs import Lines
from kopf._engine.sessions import Sessions
from kopf._engine.threads import Threads
from kopf._handlers import (
    admission,
    causes,
    execution,
    family,
    handlers,
    invocation,
    registries,
    stoppers,
    subhandling,
)
from kopf._run import leading
from kopf._settings import configuration
from kopf._structs import credentials

if TYPE_CHECKING:
    from kopf import _native

_ABANDONED = stoppers.DaemonStoppingReason.DAEMON_ABANDONED.value
_CANCELLED = stoppers.DaemonStoppingReason.DAEMON_CANCELLED.value

_SLICE = 0.005
"""How long calls are begun, in seconds, before other tasks of the loop have their turn."""


class _Stopper(stoppers.FlagSetter[stoppers.DaemonStoppingReason]):
    """The stop flag of a daemon or timer: set once, with all reasons that the engine has by now."""

    def __init__(self, call: _native.Call) -> None:
        super().__init__()
        self._call = call

    @property
    def reason(self) -> stoppers.DaemonStoppingReason | None:
        if not self.is_set():
            return None
        added = stoppers.DaemonStoppingReason(self._call.stop_reason())
        return added if self._reason is None else self._reason | added


class _Plan:
    """What is known about a handler before it is called."""

    __slots__ = (
        "handler",
        "has_children",
        "is_activity",
        "is_async",
        "is_changing",
        "is_cleanup",
        "is_indexing",
        "is_login",
        "is_probe",
        "is_spawning",
        "kwargs",
    )

    def __init__(self, handler: execution.Handler, indices: dict[str, Index]) -> None:
        self.handler = handler
        self.has_children = bool(family.children_of(handler))
        self.is_async = invocation.is_async_fn(handler.fn)
        self.is_activity = isinstance(handler, handlers.ActivityHandler)
        activity = getattr(handler, "activity", None) if self.is_activity else None
        self.is_login = activity == causes.Activity.AUTHENTICATION
        self.is_probe = activity == causes.Activity.PROBE
        self.is_cleanup = activity == causes.Activity.CLEANUP
        self.is_changing = isinstance(handler, handlers.ChangingHandler)
        self.is_indexing = isinstance(handler, handlers.IndexingHandler)
        self.is_spawning = isinstance(handler, handlers.SpawningHandler)
        self.kwargs = KwargsMaker(handler, indices, is_async=self.is_async)


class _Rest:
    """The rest of a coroutine that has begun in another context than that of the task."""

    __slots__ = ("_context", "_coro", "_future")

    def __init__(
        self, coro: Coroutine[Any, Any, None], context: contextvars.Context, future: object
    ) -> None:
        self._coro = coro
        self._context = context
        self._future = future

    def __await__(self) -> Generator[Any, Any, None]:
        run, send, throw = self._context.run, self._coro.send, self._coro.throw
        future = self._future
        try:
            while True:
                try:
                    value = yield future
                except BaseException as e:
                    future = run(throw, e)
                else:
                    future = run(send, value)
        except StopIteration:
            return


class Calls:
    """The calls that run at the moment."""

    def __init__(
        self,
        *,
        native: _native.Operator,
        handlers: Sequence[execution.Handler],
        settings: configuration.OperatorSettings,
        lifecycle: execution.LifeCycleFn,
        causes: CauseMaker,
        indices: dict[str, Index],
        lines: Lines,
        context: contextvars.Context,
        vault: credentials.Vault | None,
        seed: object,
        on_activity: Callable[[], None],
        sessions: Sessions,
    ) -> None:
        super().__init__()
        self._native = native
        self._settings = settings
        self._causes = causes
        self._indices = indices
        self.plan(handlers)
        self._lines = lines
        self._vault = vault
        self._seed = seed
        self._on_activity = on_activity
        self._sessions = sessions
        self._threads = Threads(native)
        self._context = context.copy()
        self._context.run(execution.sublifecycle_var.set, lifecycle)
        self._context.run(execution.subsettings_var.set, settings)
        self._changing_context = self._context.copy()
        self._changing_context.run(subhandling.subexecuted_var.set, False)
        self._waiting: collections.OrderedDict[int, _native.Call] = collections.OrderedDict()
        self._worker: asyncio.Task[None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stoppers: dict[int, stoppers.DaemonStopper] = {}
        self._abandoned: set[int] = set()
        self._interrupted: set[int] = set()
        self.failures: dict[str, BaseException] = {}

    def plan(self, handlers: Sequence[execution.Handler]) -> None:
        """Prepare for calls of these handlers, by their numbers."""
        self._plans = [_Plan(handler, self._indices) for handler in handlers]

    def start(self, call: _native.Call) -> None:
        """Begin a call soon."""
        self._waiting[call.id] = call
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())

    def stop(self, call_id: int, reason: int) -> None:
        """Set the stop flag of a daemon or timer."""
        stopper = self._stoppers.get(call_id)
        if stopper is not None:
            stopper.set(stoppers.DaemonStoppingReason(reason))

    def interrupt(self, call_id: int, reason: int) -> None:
        """Cancel a daemon that did not stop when asked; the engine waits for its outcome."""
        self.stop(call_id, reason)
        self._waiting.pop(call_id, None)
        task = self._tasks.get(call_id)
        if task is not None:
            self._interrupted.add(call_id)
            task.cancel()

    def cancel(self, call_id: int, reason: int) -> None:
        """Cancel a call that the engine does not wait for any more."""
        if reason:
            self.stop(call_id, reason)
        is_cancelled = not reason & _ABANDONED or reason & _CANCELLED
        task = self._tasks.get(call_id)
        if task is None:
            # It has ended, or is not begun yet, and will not be.
            if is_cancelled:
                self._waiting.pop(call_id, None)
        elif is_cancelled:
            self._abandoned.add(call_id)
            if call_id not in self._interrupted:
                task.cancel()
        else:
            # It was never to be cancelled: it may go on until the event loop ends.
            del self._tasks[call_id]

    async def close(self) -> None:
        """Cancel all calls and wait for them."""
        self._waiting.clear()
        tasks = list(self._tasks.values())
        if self._worker is not None:
            tasks.append(self._worker)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _work(self) -> None:
        """Begin calls until one of them waits for something; this task is its own from then on."""
        task = asyncio.current_task()
        assert task is not None
        self._native.hold()
        until = time.monotonic() + _SLICE
        try:
            while self._waiting:
                call_id, call = self._waiting.popitem(last=False)
                plan = self._plans[call.handler]
                base = self._changing_context if plan.is_changing else self._context
                context = base.copy()
                coro = self._run(plan, call)
                try:
                    future = context.run(coro.send, None)
                except StopIteration:
                    if _is_cancelling(task):
                        # By the handler itself: other calls must not be affected.
                        return
                else:
                    self._tasks[call_id] = task
                    self._dismiss(task)
                    await _Rest(coro, context, future)
                    return
                if time.monotonic() > until:
                    self._native.release()
                    await asyncio.sleep(0)
                    self._native.hold()
                    until = time.monotonic() + _SLICE
        finally:
            self._dismiss(task)

    def _dismiss(self, task: asyncio.Task[None]) -> None:
        """The task is not the worker any more; another one continues if there are further calls."""
        if self._worker is not task:
            return
        self._native.release()
        self._worker = None
        if self._waiting:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _run(self, plan: _Plan, call: _native.Call) -> None:
        stopper: stoppers.DaemonStopper | None = None
        if plan.is_spawning:
            stopper = self._stoppers[call.id] = _Stopper(call)
            if reason := call.stop_reason():
                stopper.set(stoppers.DaemonStoppingReason(reason))
        subrefs: set[Any] = set()
        cause: Any = None
        handler = plan.handler
        try:
            cause = self._causes.make(call.matter, stopper)
            if self._seed is not None and plan.is_login:
                result = self._take_seed(handler)
            else:
                if plan.is_cleanup:
                    await self._until_cancelled_calls_end()
                result = await self._invoke(plan, cause, call, subrefs)
        except BaseException as e:
            if problem := self._hand_over(plan, call, cause, subrefs):
                cause.logger.error(f"{handler} has a patch that cannot be used: {problem}")
            if isinstance(e, asyncio.CancelledError) and call.id in self._abandoned:
                # The engine does not wait for the outcome, so it has nothing to say about it.
                cause.logger.warning(f"{handler} is cancelled. Will escalate.")
            if cause is not None and isinstance(e, (SystemExit, KeyboardInterrupt)):
                # It ends the event loop and the process, which give no reason themselves.
                cause.logger.critical(f"{handler} ends the operator: {e!r}")
            self._fail(handler, call, e)
            if isinstance(e, (SystemExit, KeyboardInterrupt, GeneratorExit)):
                raise
        else:
            if problem := self._hand_over(plan, call, cause, subrefs):
                self._refuse(handler, call, "patch", problem)
            else:
                await self._finish(plan, call, result)
        finally:
            if stopper is not None:
                del self._stoppers[call.id]
            if self._tasks.pop(call.id, None) is not None:
                self._abandoned.discard(call.id)
            self._interrupted.discard(call.id)

    async def _until_cancelled_calls_end(self) -> None:
        """Wait for functions in threads: they still use what cleanup handlers close.

        Daemons have their own time limits, and have been waited for.
        """
        ids = [id for id in self._abandoned if id not in self._stoppers]
        tasks = [self._tasks[id] for id in ids if id in self._tasks]
        if tasks:
            await asyncio.wait(tasks)

    def _take_seed(self, handler: execution.Handler) -> object:
        """Log in with what was in the vault; other logins have their turn if it is refused."""
        if handler.id != declaring.VAULT:
            return None
        seed, self._seed = self._seed, None
        return seed

    async def _invoke(
        self, plan: _Plan, cause: Any, call: _native.Call, subrefs: set[Any]
    ) -> object:
        """Call the function in the context that toolkits rely on.

        The engine has narrowed the cause to the field of the handler already.
        """
        execution.subrefs_var.set([subrefs])
        execution.handler_var.set(plan.handler)
        execution.cause_var.set(cause)
        leading.call_var.set(call)
        registry: registries.ChangingRegistry | None = None
        if plan.is_changing:
            registry = registries.ChangingRegistry()
            subhandling.subregistry_var.set(registry)
        kwargs = plan.kwargs.make(cause, call)
        if plan.has_children:
            kwargs |= owned.kwargs_of(plan.handler, call, cause)
        fn: Any = plan.handler.fn
        if plan.is_async:
            result: object = await fn(**kwargs)
        else:
            executor = self._settings.execution.executor
            result = await self._threads.run(executor, functools.partial(fn, **kwargs))
        if registry is not None and registry._handlers and not subhandling.subexecuted_var.get():
            await subhandling.execute()
        return result

    def _hand_over(
        self, plan: _Plan, call: _native.Call, cause: Any, subrefs: set[Any]
    ) -> Exception | None:
        """Give the engine what the call has collected, whether it succeeded or not.

        Returns what is wrong with the patch, if anything.
        """
        if subrefs:
            call.note_subrefs([str(subref) for subref in subrefs])
        if isinstance(cause, causes.WebhookCause):
            for warning in cause.warnings:
                call.warn(str(warning))
        if plan.is_activity:
            self._on_activity()
        elif cause is not None:
            try:
                self._causes.release(cause, call.matter)
            except Exception as e:
                return e
        return None

    async def _finish(self, plan: _Plan, call: _native.Call, result: object) -> None:
        handler = plan.handler
        try:
            if plan.is_indexing:
                call.finish_index(self._indices[str(handler.id)].entries(result))
            elif plan.is_login:
                await self._finish_login(handler, call, result)
            elif plan.is_activity and not plan.is_probe:
                call.finish(None)
            else:
                call.finish(result)
        except Exception as e:
            self._refuse(handler, call, "credentials" if plan.is_login else "result", e)

    def _refuse(
        self, handler: execution.Handler, call: _native.Call, what: str, e: Exception
    ) -> None:
        """Fail a call whose function has succeeded."""
        self.failures[str(handler.id)] = e
        call.fail("permanent", f"The {what} of the handler cannot be used: {e}")

    async def _finish_login(
        self, handler: execution.Handler, call: _native.Call, info: object
    ) -> None:
        if info is None:
            call.finish(None)
            return
        if self._vault is not None and handler.id != declaring.VAULT:
            await self._vault.populate({str(handler.id): info})
        if isinstance(info, credentials.AiohttpSession):
            call.finish_session(
                self._sessions.add(info),
                info.default_namespace,
                info.priority,
                _timestamp(info.expiration),
            )
            return
        if not isinstance(info, credentials.ConnectionInfo):
            raise TypeError(f"only kopf.ConnectionInfo is supported, not {type(info).__name__}")
        call.finish_login(_plain_credentials(info))

    def _fail(self, handler: execution.Handler, call: _native.Call, e: BaseException) -> None:
        text = str(e) or repr(e)
        self.failures[str(handler.id)] = e
        if isinstance(e, asyncio.CancelledError):
            call.fail("cancelled")
        elif isinstance(e, execution.HandlerChildrenRetry):
            call.fail("children", delay=e.delay)
        elif isinstance(e, execution.TemporaryError):
            call.fail("temporary", text, delay=e.delay)
        elif isinstance(e, execution.PermanentError):
            if isinstance(e, admission.AdmissionError):
                call.fail("denied", text, code=e.code or 500)
            else:
                call.fail("permanent", text)
        else:
            call.fail("arbitrary", text, details=self._lines.keep(e))


def _is_cancelling(task: asyncio.Task[None]) -> bool:
    """Whether the task is about to be cancelled; Python 3.10 tells it only by a private name."""
    return bool(getattr(task, "_must_cancel", False))


def _timestamp(moment: datetime.datetime | None) -> float | None:
    """Convert a moment to seconds; without a time zone it is in UTC."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return moment.timestamp()


def _plain_credentials(info: credentials.ConnectionInfo) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(info):
        value = getattr(info, field.name)
        if value is None:
            continue
        if isinstance(value, bytes):
            value = value.decode("ascii")
        elif isinstance(value, datetime.datetime):
            value = _timestamp(value)
        elif not isinstance(value, (bool, int, float)):
            value = str(value)
        plain[field.name] = value
    return plain
