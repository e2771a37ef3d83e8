"""One running operator: the engine behind a queue, and the event loop that empties it."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
from collections.abc import Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from kopf._engine import declaring, errors, memory, posting, world
from kopf._engine.calls import Calls
from kopf._engine.causes import CauseMaker, register_mappings
from kopf._engine.decisions import Decisions
from kopf._engine.indexes import Index
from kopf._engine.logs import Lines
from kopf._engine.reviews import Reviews
from kopf._engine.sessions import Sessions
from kopf._handlers import causes, execution, handlers, registries
from kopf._models import adapting
from kopf._run import flags
from kopf._run import posting as run_posting
from kopf._settings import configuration
from kopf._structs import credentials, ephemera, ids, references

if TYPE_CHECKING:
    from kopf import _native

logger = logging.getLogger("kopf._core.reactor.running")

_PERIOD = 1.0


class Runner:
    """Runs one operator from its start to its end."""

    def __init__(
        self,
        *,
        lifecycle: execution.LifeCycleFn,
        registry: registries.OperatorRegistry,
        settings: configuration.OperatorSettings,
        identity: str | None,
        liveness_endpoint: str | None,
        clusterwide: bool,
        namespaces: Collection[references.NamespacePattern],
        stop_flag: flags.Flag | None,
        ready_flag: flags.Flag | None,
        vault: credentials.Vault | None,
        memo: ephemera.AnyMemo,
        memories: Any = None,
        indexers: Any = None,
        insights: Any = None,
        _command: Coroutine[None, None, None] | None = None,
    ) -> None:
        super().__init__()
        from kopf import _native

        register_mappings()
        self._settings = settings
        self._stop_flag = stop_flag
        self._ready_flag = ready_flag
        self._command = _command
        self._failure: Exception | None = None
        self._is_ready = False
        seed = _select(vault)
        self._registry = registry
        self._registered = declaring.registered_handlers(registry)
        self._handlers = declaring.collect_handlers(registry, has_credentials=seed is not None)
        self._described = declaring.describe_settings(settings)
        declaration = {
            "handlers": declaring.describe_handlers(self._handlers),
            "settings": self._described,
            "namespaces": declaring.describe_namespaces(clusterwide, namespaces),
            "identity": None if identity is None else str(identity),
            "liveness_endpoint": declaring.describe_endpoint(liveness_endpoint),
            "lifecycle": declaring.describe_lifecycle(lifecycle),
        }
        self._native = _native.Operator(json.dumps(declaration), world.current())
        self._call_class = _native.Call
        self._lines = Lines(settings)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._indexers = indexers
        self._indices: dict[str, Index] = {}
        self._add_indices(self._handlers)
        context = self._make_context()
        maker = CauseMaker(settings=settings, memo=memo, indices=self._indices)
        self._sessions = Sessions()
        self._calls = Calls(
            native=self._native,
            handlers=self._handlers,
            settings=settings,
            lifecycle=lifecycle,
            causes=maker,
            indices=self._indices,
            lines=self._lines,
            context=context,
            vault=vault,
            seed=seed,
            on_activity=self._send_settings,
            sessions=self._sessions,
        )
        self._decisions = Decisions(
            handlers=self._handlers,
            settings=settings,
            lifecycle=lifecycle,
            causes=maker,
            context=context,
            late_handlers=self._declare_late_handlers,
            lines=self._lines,
        )
        self._vault = vault
        self._reviews = Reviews(self._native)
        self._helpers: set[asyncio.Task[Any]] = set()

    def _add_indices(self, declared: Iterable[execution.Handler]) -> None:
        """Make the indexes of handlers; operators that were given indexers see them there."""
        for handler in declared:
            if isinstance(handler, handlers.IndexingHandler):
                name = str(handler.id)
                self._indices[name] = Index(self._native.index(name))
        if self._indexers is not None:
            self._indexers.attach(self._indices)

    def _unknown_handlers(self) -> list[Any]:
        """Get the handlers that were registered after the engine has got its list of them."""
        known = {id(handler) for handler in self._registered}
        registered = declaring.registered_handlers(self._registry)
        return [handler for handler in registered if id(handler) not in known]

    def _declare_late_handlers(self) -> dict[str, Any]:
        """Describe the handlers that startup handlers have registered."""
        unknown = self._unknown_handlers()
        self._registered += unknown
        late = [
            adapting.adapt(handler)
            for handler in unknown
            if getattr(handler, "activity", None) != causes.Activity.AUTHENTICATION
        ]
        if len(late) < len(unknown):
            logger.warning("Login handlers are ignored if they are registered at startup.")
        first = len(self._handlers)
        self._handlers += late
        self._add_indices(late)
        self._calls.plan(self._handlers)
        return {"first": first, "handlers": declaring.describe_handlers(late)}

    def _warn_of_unknown_handlers(self) -> None:
        """Handlers that are registered after the startup are not served."""
        for handler in self._unknown_handlers():
            self._registered.append(handler)
            logger.warning(f"{handler} is ignored: it was registered after the startup.")

    def _make_context(self) -> contextvars.Context:
        """The context of all handlers: with the way for their events to the cluster."""
        context = contextvars.copy_context()
        queue = posting.EventQueue(self._native)
        context.run(run_posting.event_queue_var.set, queue)
        context.run(run_posting.settings_var.set, self._settings)
        return context

    async def run(self) -> None:
        """Run until the operator is stopped, or fails."""
        loop = asyncio.get_running_loop()
        descriptor = self._native.fileno()
        loop.add_reader(descriptor, self._drain)
        try:
            self._native.set_log_level(self._lines.level())
            self._native.start()
            self._help(self._stop_on_flag())
            self._help(self._look_after())
            await self._until_ended()
        finally:
            loop.remove_reader(descriptor)
            for helper in self._helpers:
                helper.cancel()
            if self._command is not None:
                self._command.close()
            await self._calls.close()
            await self._sessions.close()
            if self._vault is not None:
                await self._vault.close()
            self._native.close()

    async def _until_ended(self) -> None:
        """Wait for the end of the engine; a cancellation makes it end in order."""
        cancelled: asyncio.CancelledError | None = None
        while not self._ended.done():
            try:
                await asyncio.wait({self._ended})
            except asyncio.CancelledError as e:
                if cancelled is not None:
                    raise
                cancelled = e
                self._native.stop()
        if cancelled is not None and self._ended.exception() is None:
            raise cancelled
        self._ended.result()

    def _help(self, coro: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(coro)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)

    async def _stop_on_flag(self) -> None:
        if self._stop_flag is not None:
            await flags.wait_flag(self._stop_flag)
            self._native.stop()

    async def _look_after(self) -> None:
        """Send changed settings to the engine, and give free memory back, from time to time.

        Startup handlers and others change settings.
        """
        trimmer = memory.Trimmer()
        while True:
            await asyncio.sleep(_PERIOD)
            trimmer.check()
            self._send_settings()
            if self._is_ready:
                self._warn_of_unknown_handlers()

    def _send_settings(self) -> None:
        described = declaring.describe_settings(self._settings)
        changed = {
            name: value for name, value in described.items() if self._described.get(name) != value
        }
        if changed and self._native.set_settings(json.dumps(changed)):
            self._described = described

    def _drain(self) -> None:
        """Take everything that the engine has for us."""
        start, call_class = self._calls.start, self._call_class
        for item in self._native.take():
            if type(item) is call_class:
                start(item)
                continue
            kind, *rest = item
            try:
                self._handle(kind, rest)
            except Exception:
                logger.exception(f"A message of the engine is not processed: {kind}")
        self._native.set_log_level(self._lines.level())

    def _handle(self, kind: str, rest: list[Any]) -> None:
        if kind == "log":
            self._lines.log(*rest)
        elif kind == "ask":
            self._decisions.answer(rest[0])
        elif kind == "stop":
            self._calls.stop(*rest)
        elif kind == "cancel":
            self._calls.cancel(*rest)
        elif kind == "interrupt":
            self._calls.interrupt(*rest)
        elif kind == "request":
            self._sessions.start(rest[0])
        elif kind == "cancel_request":
            self._sessions.cancel(rest[0])
        elif kind == "reviewed":
            self._reviews.answer(*rest)
        elif kind == "ready":
            self._is_ready = True
            if any(isinstance(handler, handlers.WebhookHandler) for handler in self._handlers):
                self._help(self._serve_reviews())
            self._help(self._announce())
        elif kind == "ended":
            self._end(rest[0])
        elif kind == "dropped":
            logger.warning(f"{rest[0]} lines of the log are lost: the event loop is blocked.")

    async def _announce(self) -> None:
        await flags.raise_flag(self._ready_flag)
        if self._command is not None:
            command, self._command = self._command, None
            await command
            self._native.stop()

    async def _serve_reviews(self) -> None:
        """Run the webhook server; the operator ends with its errors."""
        try:
            await self._reviews.serve(self._settings)
        except Exception as e:
            self._failure = e
            self._native.stop()

    def _end(self, error: tuple[str, str | None, str] | None) -> None:
        if self._ended.done():
            return
        if self._failure is not None:
            self._ended.set_exception(self._failure)
            return
        if error is None:
            self._ended.set_result(None)
            return
        kind, handler, message = error
        cause = self._calls.failures.get(handler) if handler is not None else None
        exception: Exception
        if kind == "activity" or (kind == "login" and cause is not None):
            outcome = execution.Outcome(
                final=True, exception=cause if isinstance(cause, Exception) else None
            )
            exception = errors.ActivityError(
                message, outcomes={ids.HandlerId(str(handler)): outcome}
            )
        elif kind == "login":
            exception = credentials.LoginError(message)
        else:
            exception = RuntimeError(message)
        exception.__cause__ = cause
        if kind == "login":
            logger.error(f"Credentials retriever has failed: {message}", exc_info=exception)
        self._ended.set_exception(exception)


def _select(vault: credentials.Vault | None) -> object:
    """The credentials that were in the vault before the operator has started."""
    if vault is None or vault.is_empty():
        return None
    return vault.select()[1].info


if TYPE_CHECKING:
    _Native = _native.Operator
