"""Errors of handlers, outcomes of handlers, and the execution of handlers in Python.

The engine executes top-level handlers; this module executes sub-handlers with the same rules
and the same messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import enum
import functools
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NewType, Protocol, TypeVar

from kopf._compat import LoggerAdapter
from kopf._handlers import invocation
from kopf._structs import ids

if TYPE_CHECKING:
    from kopf._settings import configuration

Logger = logging.Logger | LoggerAdapter
Result = NewType("Result", object)


class PermanentError(Exception):
    """The handler failed for good: it is not tried again."""


class TemporaryError(Exception):
    """The handler failed for now: it is tried again after the delay."""

    def __init__(self, __msg: str | None = None, delay: float | None = 60) -> None:
        super().__init__(__msg)
        self.delay = delay


class HandlerTimeoutError(PermanentError):
    """The time of the handler is over, with all its attempts."""


class HandlerRetriesError(PermanentError):
    """The attempts of the handler are used up."""


class HandlerChildrenRetry(TemporaryError):
    """Some sub-handlers are not finished, so their parent is called again."""


class ErrorsMode(enum.Enum):
    """What happens after an error that is neither temporary nor permanent by its class."""

    IGNORED = enum.auto()
    TEMPORARY = enum.auto()
    PERMANENT = enum.auto()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How one attempt of a handler ended."""

    final: bool
    delay: float | None = None
    result: Result | None = None
    exception: Exception | None = None
    subrefs: Collection[ids.HandlerId] = ()


class HandlerState(Protocol):
    """What the execution knows about the earlier attempts of a handler."""

    started: datetime.datetime
    retries: int

    @property
    def awakened(self) -> bool:
        raise NotImplementedError

    @property
    def runtime(self) -> datetime.timedelta:
        raise NotImplementedError


class State(Mapping[ids.HandlerId, HandlerState]):
    """The states of several handlers."""


@dataclasses.dataclass
class Cause(invocation.Kwargable):
    """Why handlers are called, with everything that they get as kwargs."""

    logger: Logger

    _hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not kwargs."""

    @property
    def _kwargs(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _kwargs_names(type(self))}  # type: ignore[arg-type]


@functools.cache
def _kwargs_names(cls: type[Cause]) -> tuple[str, ...]:
    """The fields of a cause that are kwargs."""
    return tuple(f.name for f in dataclasses.fields(cls) if f.name not in cls._hidden)


CauseT = TypeVar("CauseT", bound=Cause)


@dataclasses.dataclass(frozen=True)
class Handler:
    """A function with the options of its decorator."""

    id: ids.HandlerId
    fn: invocation.Invokable
    param: Any | None
    errors: ErrorsMode | None
    timeout: float | None
    retries: int | None
    backoff: float | None

    def __str__(self) -> str:
        return f"Handler {self.id!r}"

    def adjust_cause(self, cause: CauseT) -> CauseT:
        """Narrow the cause to what the handler is interested in."""
        return cause


class LifeCycleFn(Protocol):
    """Chooses which of the pending handlers are called now, and in which order."""

    def __call__(
        self, handlers: Sequence[Handler], *, state: State, **kwargs: Any
    ) -> Sequence[Handler]: ...


sublifecycle_var: ContextVar[LifeCycleFn | None] = ContextVar("sublifecycle_var")
subsettings_var: ContextVar[configuration.OperatorSettings] = ContextVar("subsettings_var")
subrefs_var: ContextVar[Iterable[set[ids.HandlerId]]] = ContextVar("subrefs_var")
handler_var: ContextVar[Handler] = ContextVar("handler_var")
cause_var: ContextVar[Cause] = ContextVar("cause_var")

ExtraContext = Callable[[], contextlib.AbstractAsyncContextManager[None]]


@contextlib.asynccontextmanager
async def no_extra_context() -> AsyncIterator[None]:
    yield


async def execute_handlers_once(
    lifecycle: LifeCycleFn,
    settings: configuration.OperatorSettings,
    handlers: Collection[Handler],
    cause: Cause,
    state: State,
    extra_context: ExtraContext = no_extra_context,
    default_errors: ErrorsMode = ErrorsMode.TEMPORARY,
) -> dict[ids.HandlerId, Outcome]:
    """Make one attempt of those handlers that the lifecycle chooses."""
    pending = [handler for handler in handlers if state[handler.id].awakened]
    chosen = lifecycle(pending, state=state, **cause.kwargs)
    outcomes: dict[ids.HandlerId, Outcome] = {}
    for handler in chosen:
        outcomes[handler.id] = await execute_handler_once(
            settings=settings,
            handler=handler,
            state=state[handler.id],
            cause=cause,
            lifecycle=lifecycle,
            extra_context=extra_context,
            default_errors=default_errors,
        )
    return outcomes


async def execute_handler_once(
    settings: configuration.OperatorSettings,
    handler: Handler,
    cause: Cause,
    state: HandlerState,
    lifecycle: LifeCycleFn | None = None,
    extra_context: ExtraContext = no_extra_context,
    default_errors: ErrorsMode = ErrorsMode.TEMPORARY,
) -> Outcome:
    """Make one attempt of a handler. Its errors become the outcome and lines in the log."""
    logger = cause.logger
    subrefs: set[ids.HandlerId] = set()
    try:
        logger.debug(f"{handler} is invoked.")
        _check_limits(handler, state)
        result = await invoke_handler(
            handler=handler,
            cause=cause,
            retry=state.retries,
            started=state.started,
            runtime=state.runtime,
            settings=settings,
            lifecycle=lifecycle,
            extra_context=extra_context,
            subrefs=subrefs,
        )
    except asyncio.CancelledError:
        logger.warning(f"{handler} is cancelled. Will escalate.")
        raise
    except HandlerChildrenRetry as e:
        logger.debug(f"{handler} has unfinished sub-handlers. Will retry soon.")
        return Outcome(final=False, exception=e, delay=e.delay, subrefs=subrefs)
    except TemporaryError as e:
        return _after_temporary(handler, state, logger, e, subrefs)
    except (HandlerTimeoutError, HandlerRetriesError) as e:
        logger.error(_text(e))
        return Outcome(final=True, exception=e, subrefs=subrefs)
    except PermanentError as e:
        logger.error(f"{handler} failed permanently: {_text(e)}")
        return Outcome(final=True, exception=e, subrefs=subrefs)
    except Exception as e:
        mode = handler.errors if handler.errors is not None else default_errors
        backoff = handler.backoff
        if backoff is None:
            backoff = settings.execution.default_backoff
        return _after_arbitrary(handler, state, logger, e, subrefs, mode, backoff)
    logger.info(f"{handler} succeeded.")
    return Outcome(final=True, result=result, subrefs=subrefs)


def _text(e: BaseException) -> str:
    return str(e) or repr(e)


def _check_limits(handler: Handler, state: HandlerState) -> None:
    """Refuse an attempt when the time or the attempts of the handler are used up."""
    if handler.timeout is not None and state.runtime.total_seconds() >= handler.timeout:
        raise HandlerTimeoutError(f"{handler} has timed out after {state.runtime}.")
    if handler.retries is not None and state.retries >= handler.retries:
        raise HandlerRetriesError(f"{handler} has exceeded {state.retries} retries.")


def _no_more(
    handler: Handler, state: HandlerState, delay: float
) -> type[HandlerTimeoutError] | type[HandlerRetriesError] | None:
    """Why there would be no next attempt after a delay, or None."""
    if handler.timeout is not None:
        if state.runtime.total_seconds() + delay >= handler.timeout:
            return HandlerTimeoutError
    if handler.retries is not None and state.retries + 1 >= handler.retries:
        return HandlerRetriesError
    return None


def _after_temporary(
    handler: Handler,
    state: HandlerState,
    logger: Logger,
    e: TemporaryError,
    subrefs: set[ids.HandlerId],
) -> Outcome:
    stop = _no_more(handler, state, e.delay or 0)
    if stop is None:
        logger.error(f"{handler} failed temporarily: {_text(e)}")
        return Outcome(final=False, exception=e, delay=e.delay, subrefs=subrefs)
    if stop is HandlerTimeoutError:
        limit = f"will time out after {handler.timeout} seconds"
    else:
        limit = f"will exceed {handler.retries} retries"
    message = f"{handler} failed temporarily but {limit}: {_text(e)}"
    logger.error(message)
    return Outcome(final=True, exception=stop(message), subrefs=subrefs)


def _after_arbitrary(
    handler: Handler,
    state: HandlerState,
    logger: Logger,
    e: Exception,
    subrefs: set[ids.HandlerId],
    mode: ErrorsMode,
    backoff: float,
) -> Outcome:
    failed = f"{handler} failed with an exception and will"
    if mode is ErrorsMode.IGNORED:
        logger.exception(f"{failed} ignore it: {_text(e)}")
        return Outcome(final=True, subrefs=subrefs)
    if mode is ErrorsMode.PERMANENT:
        logger.exception(f"{failed} stop now: {_text(e)}")
        return Outcome(final=True, exception=e, subrefs=subrefs)
    if mode is not ErrorsMode.TEMPORARY:
        raise RuntimeError(f"Unknown mode for errors: {mode!r}")
    stop = _no_more(handler, state, backoff)
    if stop is None:
        logger.exception(f"{failed} try again in {backoff} seconds: {_text(e)}")
        return Outcome(final=False, exception=e, delay=backoff, subrefs=subrefs)
    if stop is HandlerTimeoutError:
        limit = f"time out in {handler.timeout} seconds"
    else:
        limit = f"exceed {handler.retries} retries"
    message = f"{failed} stop now (it would {limit} on the next attempt): {_text(e)}"
    logger.exception(message)
    return Outcome(final=True, exception=stop(message), subrefs=subrefs)


async def invoke_handler(
    *,
    handler: Handler,
    cause: Cause,
    retry: int,
    started: datetime.datetime,
    runtime: datetime.timedelta,
    settings: configuration.OperatorSettings,
    lifecycle: LifeCycleFn | None,
    subrefs: set[ids.HandlerId],
    extra_context: ExtraContext = no_extra_context,
) -> Result | None:
    """Call the function of a handler in its context, so that the toolkits know the object."""
    cause = handler.adjust_cause(cause)
    values: list[tuple[ContextVar[Any], Any]] = [
        (sublifecycle_var, lifecycle),
        (subsettings_var, settings),
        (subrefs_var, [*subrefs_var.get([]), subrefs]),
        (handler_var, handler),
        (cause_var, cause),
    ]
    kwargs = {
        "param": handler.param,
        "retry": retry,
        "started": started,
        "runtime": runtime,
    }
    with invocation.context(values):
        async with extra_context():
            result = await invocation.invoke(
                handler.fn, settings=settings, kwargsrc=cause, kwargs=kwargs
            )
    return Result(result)
