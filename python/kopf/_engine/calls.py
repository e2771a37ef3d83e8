"""Calls of handlers: one task per call, finished with a result or an error."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kopf._engine import declaring, owned
from kopf._engine.causes import CauseMaker
from kopf._engine.indexes import Index
from kopf._engine.logs import Lines
from kopf._engine.sessions import Sessions
from kopf._handlers import (
    admission,
    causes,
    execution,
    handlers,
    invocation,
    stoppers,
    subhandling,
)
from kopf._settings import configuration
from kopf._structs import credentials

if TYPE_CHECKING:
    from kopf import _native

_ABANDONED = stoppers.DaemonStoppingReason.DAEMON_ABANDONED.value
_CANCELLED = stoppers.DaemonStoppingReason.DAEMON_CANCELLED.value
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Calls:
    """The calls that run at the moment."""

    def __init__(
        self,
        *,
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
        self._handlers = handlers
        self._settings = settings
        self._lifecycle = lifecycle
        self._causes = causes
        self._indices = indices
        self._lines = lines
        self._context = context
        self._vault = vault
        self._seed = seed
        self._on_activity = on_activity
        self._sessions = sessions
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stoppers: dict[int, stoppers.DaemonStopper] = {}
        self._abandoned: set[int] = set()
        self.failures: dict[str, BaseException] = {}

    def start(self, call: _native.Call) -> None:
        """Start a call in a task of its own."""
        loop = asyncio.get_running_loop()
        context = self._context.copy()
        coro = self._run(call)
        task: asyncio.Task[None] = context.run(loop.create_task, coro)
        self._tasks[call.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(call.id, None))

    def stop(self, call_id: int, reason: int) -> None:
        """Set the stop flag of a daemon or timer."""
        stopper = self._stoppers.get(call_id)
        if stopper is not None:
            stopper.set(stoppers.DaemonStoppingReason(reason))

    def cancel(self, call_id: int, reason: int) -> None:
        """Cancel a call that the engine does not wait for any more."""
        if reason:
            self.stop(call_id, reason)
        task = self._tasks.get(call_id)
        if task is None:
            return
        if reason & _ABANDONED and not reason & _CANCELLED:
            # It was never to be cancelled: it may go on until the event loop ends.
            del self._tasks[call_id]
            return
        self._abandoned.add(call_id)
        task.cancel()

    async def close(self) -> None:
        """Cancel all calls and wait for them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, call: _native.Call) -> None:
        handler = self._handlers[call.handler]
        stopper: stoppers.DaemonStopper | None = None
        if isinstance(handler, handlers.SpawningHandler):
            stopper = self._stoppers[call.id] = stoppers.FlagSetter()
            if reason := call.stop_reason():
                stopper.set(stoppers.DaemonStoppingReason(reason))
        subrefs: set[Any] = set()
        cause: Any = None
        try:
            cause = self._causes.make(call.matter, stopper)
            if self._seed is not None and self._is_login(handler):
                result = self._take_seed(handler)
            else:
                result = await self._invoke(handler, cause, call, subrefs)
        except BaseException as e:
            self._hand_over(call, cause, subrefs)
            if isinstance(e, asyncio.CancelledError) and call.id in self._abandoned:
                # The engine does not wait for the outcome, so it has nothing to say about it.
                cause.logger.warning(f"{handler} is cancelled. Will escalate.")
            self._fail(handler, call, e)
            if not isinstance(e, (Exception, asyncio.CancelledError)):
                raise
        else:
            self._hand_over(call, cause, subrefs)
            await self._finish(handler, call, result)
        finally:
            self._stoppers.pop(call.id, None)
            self._abandoned.discard(call.id)

    def _take_seed(self, handler: execution.Handler) -> object:
        """Log in with what was in the vault; other logins have their turn if it is refused."""
        if handler.id != declaring.VAULT:
            return None
        seed, self._seed = self._seed, None
        return seed

    async def _invoke(
        self, handler: execution.Handler, cause: Any, call: _native.Call, subrefs: set[Any]
    ) -> object:
        """Call the function in the context that toolkits rely on.

        The engine has narrowed the cause to the field of the handler already.
        """
        extra: execution.ExtraContext = execution.no_extra_context
        if isinstance(cause, causes.ChangingCause):
            extra = subhandling.subhandling_context
        values: list[tuple[contextvars.ContextVar[Any], Any]] = [
            (execution.sublifecycle_var, self._lifecycle),
            (execution.subsettings_var, self._settings),
            (execution.subrefs_var, [subrefs]),
            (execution.handler_var, handler),
            (execution.cause_var, cause),
        ]
        kwargs = {
            "param": handler.param,
            "retry": call.retry,
            "started": _EPOCH + datetime.timedelta(seconds=call.started),
            "runtime": datetime.timedelta(seconds=call.runtime),
        }
        kwargs |= owned.kwargs_of(handler, call, cause)
        with invocation.context(values):
            async with extra():
                return await invocation.invoke(
                    handler.fn, settings=self._settings, kwargsrc=cause, kwargs=kwargs
                )

    def _hand_over(self, call: _native.Call, cause: Any, subrefs: set[Any]) -> None:
        """Give the engine what the call has collected, whether it succeeded or not."""
        if subrefs:
            call.note_subrefs([str(subref) for subref in subrefs])
        if isinstance(cause, causes.ActivityCause):
            self._on_activity()
        if isinstance(cause, causes.ResourceCause):
            self._causes.release(call.matter)
        if isinstance(cause, causes.WebhookCause):
            for warning in cause.warnings:
                call.warn(str(warning))

    async def _finish(self, handler: execution.Handler, call: _native.Call, result: object) -> None:
        try:
            if isinstance(handler, handlers.IndexingHandler):
                call.finish_index(self._indices[str(handler.id)].entries(result))
            elif not isinstance(handler, handlers.ActivityHandler):
                call.finish(result)
            elif handler.activity == causes.Activity.AUTHENTICATION:
                await self._finish_login(handler, call, result)
            elif handler.activity == causes.Activity.PROBE:
                call.finish(result)
            else:
                call.finish(None)
        except Exception as e:
            what = "credentials" if self._is_login(handler) else "result"
            message = f"The {what} of the handler cannot be used: {e}"
            self.failures[str(handler.id)] = e
            call.fail("permanent", message)

    @staticmethod
    def _is_login(handler: execution.Handler) -> bool:
        return (
            isinstance(handler, handlers.ActivityHandler)
            and handler.activity == causes.Activity.AUTHENTICATION
        )

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
