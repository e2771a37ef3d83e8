"""Kubernetes events: from ``kopf.event()`` and others, and from loggers of objects."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kopf._logs import loggers
from kopf._structs import bodies, dicts

if TYPE_CHECKING:
    from kopf._settings import configuration

logger = logging.getLogger("kopf._core.engines.posting")


class K8sEvent(NamedTuple):
    """An event to post."""

    ref: bodies.ObjectReference
    type: str
    reason: str
    message: str
    backoffs: float | Iterable[float] = ()


class K8sEventQueue(Protocol):
    """Where events go; the operator posts them from there."""

    def put_nowait(self, event: K8sEvent, /) -> None: ...


event_queue_loop_var: ContextVar[asyncio.AbstractEventLoop] = ContextVar("event_queue_loop_var")
event_queue_var: ContextVar[K8sEventQueue] = ContextVar("event_queue_var")
settings_var: ContextVar[configuration.OperatorSettings] = ContextVar("settings_var")

_TYPES = ((10, "Debug"), (20, "Normal"), (30, "Warning"), (40, "Error"), (50, "Fatal"))


def enqueue(
    ref: bodies.ObjectReference,
    type: str,
    reason: str,
    message: str,
    backoffs: float | Iterable[float] = (),
) -> None:
    """Queue an event, from any thread."""
    queue = event_queue_var.get()
    loop = event_queue_loop_var.get(None)
    event = K8sEvent(ref=ref, type=type, reason=reason, message=message, backoffs=backoffs)
    if loop is None or loop is asyncio._get_running_loop():
        queue.put_nowait(event)
    else:
        loop.call_soon_threadsafe(queue.put_nowait, event)


def _post(
    objs: Any,
    type: str,
    reason: str,
    message: str,
    backoffs: float | Iterable[float] | None,
    level: int | None = None,
) -> None:
    """Queue an event for every object, if the settings allow it."""
    posting = settings_var.get().posting
    if not posting.enabled or (level is not None and level < posting.level):
        return
    delays = posting.default_backoffs if backoffs is None else backoffs
    for obj in cast("Iterator[bodies.Body]", dicts.walk(objs)):
        ref = bodies.build_object_reference(obj)
        enqueue(ref=ref, type=type, reason=reason, message=message, backoffs=delays)


def event(
    objs: bodies.Body | Iterable[bodies.Body],
    *,
    type: str,
    reason: str,
    message: str = "",
    backoffs: float | Iterable[float] | None = None,
) -> None:
    """Post an event of any type for objects."""
    _post(objs, type, reason, message, backoffs)


def info(
    objs: bodies.Body | Iterable[bodies.Body],
    *,
    reason: str,
    message: str = "",
    backoffs: float | Iterable[float] | None = None,
) -> None:
    """Post a normal event for objects."""
    _post(objs, "Normal", reason, message, backoffs, level=logging.INFO)


def warn(
    objs: bodies.Body | Iterable[bodies.Body],
    *,
    reason: str,
    message: str = "",
    backoffs: float | Iterable[float] | None = None,
) -> None:
    """Post a warning for objects."""
    _post(objs, "Warning", reason, message, backoffs, level=logging.WARNING)


def exception(
    objs: bodies.Body | Iterable[bodies.Body],
    *,
    reason: str = "",
    message: str = "",
    exc: BaseException | None = None,
    backoffs: float | Iterable[float] | None = None,
) -> None:
    """Post an error for objects: of a given exception, or of the one that is being handled."""
    if exc is None:
        exc = sys.exc_info()[1]
    texts = [message] if message else []
    texts += [str(exc)] if exc else []
    reason = reason or type(exc).__name__
    _post(objs, "Error", reason, " ".join(texts), backoffs, level=logging.ERROR)


class K8sPoster(logging.Handler):
    """Posts messages of object loggers as events, if ``settings.posting.loggers`` is set."""

    def filter(self, record: logging.LogRecord) -> bool:
        settings: configuration.OperatorSettings | None = getattr(record, "settings", None)
        if settings is None or not settings.posting.loggers or not settings.posting.enabled:
            return False
        if record.levelno < settings.posting.level or not hasattr(record, "k8s_ref"):
            return False
        return not getattr(record, "k8s_skip", False) and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            names = [name for limit, name in _TYPES if record.levelno <= limit]
            posting = cast(Any, record).settings.posting
            enqueue(
                ref=cast(Any, record).k8s_ref,
                type=names[0] if names else record.levelname.capitalize(),
                reason="Logging",
                message=self.format(record),
                backoffs=posting.logging_backoffs,
            )
        except Exception:
            self.handleError(record)


loggers.logger.addHandler(K8sPoster())
