"""Decisions that only Python can take: filters, delays, patch functions, lifecycles, storages."""

from __future__ import annotations

import contextvars
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kopf._engine.causes import CauseMaker, resource_of
from kopf._engine.kwargs import CallbackKwargsMaker
from kopf._engine.logs import Lines
from kopf._handlers import execution
from kopf._settings import configuration
from kopf._structs import bodies, patches

if TYPE_CHECKING:
    from kopf import _native

logger = logging.getLogger("kopf._core.reactor.processing")


@dataclasses.dataclass(frozen=True)
class _Attempts:
    """What lifecycles know about a handler."""

    retries: int


class Decisions:
    """Answers the engine. The functions of users are called in the event loop, as in Kopf."""

    def __init__(
        self,
        *,
        handlers: Sequence[execution.Handler],
        settings: configuration.OperatorSettings,
        lifecycle: execution.LifeCycleFn,
        causes: CauseMaker,
        context: contextvars.Context,
        late_handlers: Callable[[], Any],
        lines: Lines,
    ) -> None:
        super().__init__()
        self._lines = lines
        self._late_handlers = late_handlers
        self._handlers = handlers
        self._settings = settings
        self._lifecycle = lifecycle
        self._causes = causes
        self._context = context
        self._kwargs = CallbackKwargsMaker(causes.indices)

    def answer(self, ask: _native.Ask) -> None:
        """Answer one question; errors go to the engine, which throttles the object."""
        try:
            ask.answer(self._context.copy().run(self._decide, ask))
        except Exception as e:
            ask.fail(repr(e), e, self._lines.keep(e))

    def _decide(self, ask: _native.Ask) -> Any:
        if ask.handler is not None:
            return self._decide_by_handler(self._handlers[ask.handler], ask)
        if ask.kind == "transform":
            body = ask.value()
            ask.function()(body)
            return body
        if ask.kind == "lifecycle":
            return self._choose(ask)
        if ask.kind == "late_handlers":
            return self._late_handlers()
        section, _, _ = ask.kind.partition(".")
        storage = (
            self._settings.persistence.progress_storage
            if section == "progress"
            else self._settings.persistence.diffbase_storage
        )
        return _STORAGE_METHODS[ask.kind](storage, ask)

    def _decide_by_handler(self, handler: Any, ask: _native.Ask) -> Any:
        if ask.kind == "selector":
            return bool(handler.selector.fn(resource_of(ask.value())))
        matter = ask.matter()
        cause: Any = self._causes.make(matter)
        try:
            callback = getattr(handler, ask.kind)
            if ask.kind in ("labels", "annotations"):
                callback = callback[ask.key]
            kwargs = self._kwargs.make(callback, cause)
            if ask.kind == "initial_delay":
                return float(callback(**kwargs))
            if ask.kind == "when":
                return bool(callback(**kwargs))
            return bool(callback(ask.value(), **kwargs))
        finally:
            self._causes.release(cause, matter)

    def _choose(self, ask: _native.Ask) -> list[str]:
        retries: Mapping[str, int] = ask.value()
        due = [h for h in self._handlers if h.id in retries]
        unique = {handler.id: handler for handler in reversed(due)}
        ordered = [unique[id] for id in retries if id in unique]  # type: ignore[index]
        state: Any = {id: _Attempts(retries=count) for id, count in retries.items()}
        matter = ask.matter()
        cause: Any = self._causes.make(matter)
        try:
            kwargs = self._kwargs.make(self._lifecycle, cause)
            return [str(handler.id) for handler in self._lifecycle(ordered, state=state, **kwargs)]
        finally:
            self._causes.release(cause, matter)


def _body(ask: _native.Ask) -> bodies.Body:
    return bodies.Body(ask.matter().body())


def _written(ask: _native.Ask, write: Callable[[patches.Patch, dict[str, Any]], object]) -> Any:
    """Let a storage write into a patch; get the new content of the patch."""
    given = ask.value()
    patch = patches.Patch(given.pop("patch"))
    write(patch, given)
    return dict(patch)


def _fetch_progress(storage: Any, ask: _native.Ask) -> Any:
    return storage.fetch(key=ask.key, body=_body(ask))


def _store_progress(storage: Any, ask: _native.Ask) -> Any:
    def write(patch: patches.Patch, given: dict[str, Any]) -> None:
        storage.store(key=ask.key, record=given["record"], body=_body(ask), patch=patch)
        storage.flush()

    return _written(ask, write)


def _purge_progress(storage: Any, ask: _native.Ask) -> Any:
    def write(patch: patches.Patch, _: dict[str, Any]) -> None:
        storage.purge(key=ask.key, body=_body(ask), patch=patch)
        storage.flush()

    return _written(ask, write)


def _touch_progress(storage: Any, ask: _native.Ask) -> Any:
    def write(patch: patches.Patch, given: dict[str, Any]) -> None:
        storage.touch(body=_body(ask), patch=patch, value=given["value"])

    return _written(ask, write)


def _clear_progress(storage: Any, ask: _native.Ask) -> Any:
    return storage.clear(essence=ask.value())


def _build_diffbase(storage: Any, ask: _native.Ask) -> Any:
    return storage.build(body=_body(ask), extra_fields=[tuple(path) for path in ask.value()])


def _fetch_diffbase(storage: Any, ask: _native.Ask) -> Any:
    return storage.fetch(body=_body(ask))


def _store_diffbase(storage: Any, ask: _native.Ask) -> Any:
    def write(patch: patches.Patch, given: dict[str, Any]) -> None:
        storage.store(body=_body(ask), patch=patch, essence=given["essence"])

    return _written(ask, write)


_STORAGE_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "progress.fetch": _fetch_progress,
    "progress.store": _store_progress,
    "progress.purge": _purge_progress,
    "progress.touch": _touch_progress,
    "progress.clear": _clear_progress,
    "diffbase.build": _build_diffbase,
    "diffbase.fetch": _fetch_diffbase,
    "diffbase.store": _store_diffbase,
}
