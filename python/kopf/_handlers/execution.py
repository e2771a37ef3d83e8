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
    attempt = _Attempt(
        handler=handler,
        cause=cause,
        state=state,
        errors=handler.errors or default_errors,
        backoff=settings.execution.default_backoff if handler.backoff is None else handler.backoff,
    )
    cause.logger.debug(f"{handler} is invoked.")
    try:
        attempt.refuse_if_exhausted()
        times: dict[str, Any] = {"started": state.started, "runtime": state.runtime}
        returned = await invoke_handler(
            **times,
            retry=state.retries,
            handler=handler,
            cause=cause,
            settings=settings,
            lifecycle=lifecycle,
            subrefs=attempt.subrefs,
            extra_context=extra_context,
        )
    except asyncio.CancelledError:
        cause.logger.warning(f"{handler} is cancelled. Will escalate.")
        raise
    except Exception as error:
        return attempt.judge(error)
    cause.logger.info(f"{handler} succeeded.")
    return Outcome(final=True, result=returned, subrefs=attempt.subrefs)


@dataclasses.dataclass
class _Attempt:
    """One attempt of a handler: decides what its errors mean."""

    handler: Handler
    cause: Cause
    state: HandlerState
    errors: ErrorsMode
    backoff: float
    subrefs: set[ids.HandlerId] = dataclasses.field(default_factory=set)

    def refuse_if_exhausted(self) -> None:
        """Refuse the attempt when the time or the attempts of the handler are used up."""
        runtime, retries = self.state.runtime, self.state.retries
        if self.limit_at(runtime.total_seconds(), retries) is HandlerTimeoutError:
            raise HandlerTimeoutError(f"{self.handler} has timed out after {runtime}.")
        if self.limit_at(0, retries) is HandlerRetriesError:
            raise HandlerRetriesError(f"{self.handler} has exceeded {retries} retries.")

    def limit_at(self, seconds: float, retries: int) -> _Limit | None:
        """Find the limit that is reached after so much time and so many attempts."""
        if self.handler.timeout is not None and seconds >= self.handler.timeout:
            return HandlerTimeoutError
        if self.handler.retries is not None and retries >= self.handler.retries:
            return HandlerRetriesError
        return None

    def limit_after(self, delay: float | None) -> _Limit | None:
        """Find the limit that prevents another attempt after a delay."""
        seconds = self.state.runtime.total_seconds() + (delay or 0)
        return self.limit_at(seconds, self.state.retries + 1)

    def judge(self, error: Exception) -> Outcome:
        """Decide what an error means for the handler, and log it."""
        log = self.cause.logger
        text = str(error) or repr(error)
        match error:
            case HandlerChildrenRetry():
                log.debug(f"{self.handler} has unfinished sub-handlers. Will retry soon.")
                return self.again(error, error.delay)
            case TemporaryError():
                return self.judge_temporary(error, text)
            case HandlerTimeoutError() | HandlerRetriesError():
                log.error(text)
                return self.over(error)
            case PermanentError():
                log.error(f"{self.handler} failed permanently: {text}")
                return self.over(error)
        return self.judge_arbitrary(error, text)

    def judge_temporary(self, error: TemporaryError, text: str) -> Outcome:
        limit = self.limit_after(error.delay)
        if limit is None:
            self.cause.logger.error(f"{self.handler} failed temporarily: {text}")
            return self.again(error, error.delay)
        will = (
            f"time out after {self.handler.timeout} seconds"
            if limit is HandlerTimeoutError
            else f"exceed {self.handler.retries} retries"
        )
        message = f"{self.handler} failed temporarily but will {will}: {text}"
        self.cause.logger.error(message)
        return self.over(limit(message))

    def judge_arbitrary(self, error: Exception, text: str) -> Outcome:
        """Judge an error of no special class: the errors mode of the handler decides."""
        limit = self.limit_after(self.backoff)
        outcome = self.over(error)
        if self.errors is ErrorsMode.IGNORED:
            then = "ignore it"
            outcome = self.over(None)
        elif self.errors is ErrorsMode.PERMANENT:
            then = "stop now"
        elif self.errors is not ErrorsMode.TEMPORARY:
            raise RuntimeError(f"Unknown mode for errors: {self.errors!r}")
        elif limit is None:
            then = f"try again in {self.backoff} seconds"
            outcome = self.again(error, self.backoff)
        else:
            would = (
                f"time out in {self.handler.timeout} seconds"
                if limit is HandlerTimeoutError
                else f"exceed {self.handler.retries} retries"
            )
            then = f"stop now (it would {would} on the next attempt)"
        message = f"{self.handler} failed with an exception and will {then}: {text}"
        self.cause.logger.exception(message)
        if self.errors is ErrorsMode.TEMPORARY and limit is not None:
            outcome = self.over(limit(message))
        return outcome

    def again(self, error: Exception, delay: float | None) -> Outcome:
        return Outcome(final=False, exception=error, delay=delay, subrefs=self.subrefs)

    def over(self, error: Exception | None) -> Outcome:
        return Outcome(final=True, exception=error, subrefs=self.subrefs)


_Limit = type[HandlerTimeoutError] | type[HandlerRetriesError]


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
