"""The kwargs of handlers: all of them, or those that a function can see."""

from __future__ import annotations

import dataclasses
import datetime
import dis
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kopf._handlers import causes, execution, handlers

if TYPE_CHECKING:
    from kopf import _native

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

_INTROSPECTION = frozenset(
    {
        "locals",
        "vars",
        "eval",
        "exec",
        "dir",
        "breakpoint",
        "set_trace",
        "_getframe",
        "currentframe",
        "stack",
        "inspect",
    }
)
"""Names by which a function may look at its kwargs without naming them."""

_CAUSES: Mapping[type[execution.Handler], type[causes.ResourceCause]] = {
    handlers.IndexingHandler: causes.IndexingCause,
    handlers.WatchingHandler: causes.WatchingCause,
    handlers.ChangingHandler: causes.ChangingCause,
    handlers.DaemonHandler: causes.DaemonCause,
    handlers.TimerHandler: causes.DaemonCause,
}

_Getter = Callable[[Any, Any], Any]
"""Gets one kwarg from a cause and a call."""


def _started(_: Any, call: _native.Call) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=call.started)


_OF_CALLS: Mapping[str, _Getter] = {
    "retry": lambda _, call: call.retry,
    "started": _started,
    "runtime": lambda _, call: datetime.timedelta(seconds=call.runtime),
}

_OF_OBJECTS: Mapping[str, _Getter] = {
    "spec": lambda cause, _: cause.body.spec,
    "meta": lambda cause, _: cause.body.metadata,
    "status": lambda cause, _: cause.body.status,
    "labels": lambda cause, _: cause.body.metadata.labels,
    "annotations": lambda cause, _: cause.body.metadata.annotations,
    "name": lambda cause, _: cause._matter.reference()[2] or None,
    "uid": lambda cause, _: cause._matter.reference()[3] or None,
    "namespace": lambda cause, _: cause._matter.reference()[4],
}


def _field(name: str) -> _Getter:
    return lambda cause, _: getattr(cause, name)


def _constant(value: object) -> _Getter:
    return lambda _, __: value


def _stopped(is_async: bool) -> _Getter:
    if is_async:
        return lambda cause, _: cause.stopper.async_waiter
    return lambda cause, _: cause.stopper.sync_waiter


def _getters_of_cause(cause_class: type[causes.ResourceCause]) -> dict[str, _Getter]:
    names = [field.name for field in dataclasses.fields(cause_class)]
    fields = {name: _field(name) for name in names if name not in cause_class._hidden}
    return {**fields, **_OF_OBJECTS}


class KwargsMaker:
    """Makes the kwargs of one handler."""

    def __init__(
        self, handler: execution.Handler, indices: Mapping[str, object], *, is_async: bool
    ) -> None:
        super().__init__()
        self._param = handler.param
        self._is_async = is_async
        self._getters: list[tuple[str, _Getter]] | None = None
        cause_class = _CAUSES.get(type(handler))
        seen = None if cause_class is None else visible_kwargs(handler.fn)
        if seen is None or cause_class is None:
            return
        getters: dict[str, _Getter] = {"param": _constant(handler.param), **_OF_CALLS}
        getters |= _getters_of_cause(cause_class)
        if cause_class is causes.DaemonCause:
            getters["stopped"] = _stopped(is_async)
        getters |= {name: _constant(index) for name, index in indices.items()}
        self._getters = [(name, getter) for name, getter in getters.items() if name in seen]

    def make(self, cause: Any, call: _native.Call) -> dict[str, Any]:
        """Make the kwargs of one call."""
        if self._getters is not None:
            return {name: getter(cause, call) for name, getter in self._getters}
        kwargs: dict[str, Any] = {"param": self._param}
        for name, getter in _OF_CALLS.items():
            kwargs[name] = getter(cause, call)
        kwargs |= cause.async_kwargs if self._is_async else cause.sync_kwargs
        return kwargs


class CallbackKwargsMaker:
    """Makes the kwargs of filters and other callbacks of handlers."""

    def __init__(self, indices: Mapping[str, object]) -> None:
        super().__init__()
        self._indices = indices
        # By the numbers of callbacks, which exist as long as their handlers, and by causes.
        self._getters: dict[tuple[int, type], list[tuple[str, _Getter]] | None] = {}

    def make(self, callback: object, cause: Any) -> dict[str, Any]:
        """Make the kwargs of one callback."""
        key = (id(callback), type(cause))
        if key not in self._getters:
            self._getters[key] = self._choose(callback, cause)
        getters = self._getters[key]
        if getters is None:
            return cause.kwargs  # type: ignore[no-any-return]
        return {name: getter(cause, None) for name, getter in getters}

    def _choose(self, callback: object, cause: Any) -> list[tuple[str, _Getter]] | None:
        seen = visible_kwargs(callback)
        if seen is None or not hasattr(cause, "_matter"):
            return None
        getters = _getters_of_cause(type(cause))
        getters |= {name: _constant(index) for name, index in self._indices.items()}
        return [(name, getter) for name, getter in getters.items() if name in seen]


def visible_kwargs(fn: object) -> frozenset[str] | None:
    """The kwargs that a function can see; None if it can see all of them, or if that is unknown.

    Handlers have to accept all kwargs, and most of them ignore the rest of them, as in ``**_``.
    What the function cannot see is not made: that would take longer than everything else.
    """
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    if type(fn) is not types.FunctionType or sys.gettrace() is not None:
        return None
    code = fn.__code__
    if not code.co_flags & inspect.CO_VARKEYWORDS or code.co_posonlyargcount:
        return None
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    rest = names[count + bool(code.co_flags & inspect.CO_VARARGS)]
    if rest in code.co_cellvars or not _INTROSPECTION.isdisjoint(code.co_names):
        return None
    for instruction in dis.get_instructions(code):
        # Some instructions are about two variables.
        used = None if instruction.opname == "LOAD_CONST" else instruction.argval
        if used == rest or (isinstance(used, tuple) and rest in used):
            return None
    return frozenset(names[:count])
