"""Handlers with annotated parameters: they get instances of models for ``spec`` and ``status``.

Changes of a typed status are written at the end of the handler, as those of the patch.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from kopf._handlers import execution, handlers, invocation
from kopf._models.flavours import flavour_of, is_model, name_of
from kopf._models.resources import TypedResource, resource_of

_SECTIONS = ("spec", "status")


def adapt(handler: execution.Handler) -> execution.Handler:
    """Let a handler have instances if it annotates its parameters with models.

    Raises ``TypeError`` for annotations that do not fit the class that the handler is for.
    """
    if not isinstance(handler, handlers.ResourceHandler):
        return handler
    wanted = _wanted(handler)
    if not wanted:
        return handler
    return dataclasses.replace(handler, fn=_wrapped(handler.fn, wanted))


def _wanted(handler: handlers.ResourceHandler) -> dict[str, Any]:
    """Get the models of parameters by their names."""
    model = handler.selector.model if handler.selector is not None else None
    declared = resource_of(model) if model is not None else None
    function = _function(handler.fn)
    annotations = getattr(function, "__annotations__", {})
    found: dict[str, Any] = {}
    for name in _SECTIONS:
        if name in annotations:
            tp = _resolved(handler, function, name, annotations[name], declared)
            if flavour_of(tp) is not None:
                _check(handler, name, tp, declared)
                found[name] = tp
    return found


def _function(fn: Any) -> Any:
    """Get the function inside of partials and wrappers."""
    while isinstance(fn, functools.partial) or hasattr(fn, "__wrapped__"):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__wrapped__
    return fn


def _resolved(
    handler: handlers.ResourceHandler,
    function: Any,
    name: str,
    annotation: Any,
    declared: TypedResource | None,
) -> Any:
    """Get the type of an annotation, which may be a text; none if nothing is known about it."""
    tp = annotation
    if isinstance(annotation, str):
        try:
            names = inspect.getclosurevars(function).nonlocals if callable(function) else {}
            tp = eval(annotation, {**getattr(function, "__globals__", {}), **names})
        except Exception as e:
            own = _known_by_name(annotation, declared)
            if own is None and declared is not None:
                raise TypeError(
                    f"{handler}: the annotation {annotation!r} of {name!r} cannot be resolved: {e}"
                ) from None
            tp = own
    if typing.get_origin(tp) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(tp) if arg is not type(None)]
        tp = rest[0] if len(rest) == 1 else None
    return tp


def _known_by_name(annotation: str, declared: TypedResource | None) -> Any:
    """Find a class of the resource by its name: classes inside of functions have no other way."""
    models = (declared.spec, declared.status) if declared is not None else ()
    return next((cls for cls in models if getattr(cls, "__name__", None) == annotation), None)


def _check(
    handler: handlers.ResourceHandler, name: str, tp: Any, declared: TypedResource | None
) -> None:
    if declared is None:
        return
    expected = getattr(declared, name)
    if expected is not tp:
        known = f"is {name_of(expected)}" if expected is not None else "has no class"
        raise TypeError(
            f"{handler}: the parameter {name!r} is annotated with {name_of(tp)}, "
            f"but the {name} of {declared.kind} {known}"
        )


def _wrapped(fn: Any, wanted: Mapping[str, Any]) -> Any:
    """Wrap a function; the same wrapper every time, since functions are told by their identity."""
    key = tuple(wanted.items())
    known: dict[Any, Any] = getattr(fn, "__dict__", {}).setdefault("__kopf_typed__", {})
    if key not in known:
        known[key] = _wrapper(fn, wanted)
    return known[key]


def _wrapper(fn: Callable[..., Any], wanted: Mapping[str, Any]) -> Callable[..., Any]:
    if invocation.is_async_fn(fn):

        @functools.wraps(fn)
        async def asynchronous(**kwargs: Any) -> Any:
            with _Typed(wanted, kwargs):
                return _result(await fn(**kwargs))

        return asynchronous

    @functools.wraps(fn)
    def synchronous(**kwargs: Any) -> Any:
        with _Typed(wanted, kwargs):
            return _result(fn(**kwargs))

    return synchronous


def _result(value: Any) -> Any:
    from kopf._models.conversion import encode

    return encode(value) if is_model(value) else value


class _Typed:
    """Replaces kwargs by instances, and takes over what a handler does to its status."""

    def __init__(self, wanted: Mapping[str, Any], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self._wanted = wanted
        self._kwargs = kwargs
        self._before: Any = None

    def __enter__(self) -> None:
        from kopf._models.conversion import decode, encode

        for name, tp in self._wanted.items():
            raw = self._kwargs.get(name)
            try:
                self._kwargs[name] = decode(tp, {} if raw is None else raw)
            except Exception as e:
                if name == "status" and not raw:
                    self._kwargs[name] = None  # it has not been written yet
                    continue
                text = f"The {name} does not fit {name_of(tp)}: {e}"
                raise execution.PermanentError(text) from e
        self._before = encode(self._status())

    def _status(self) -> Any:
        return self._kwargs["status"] if "status" in self._wanted else None

    def __exit__(self, *_: object) -> None:
        from kopf._models.conversion import encode

        status, patch = self._status(), self._kwargs.get("patch")
        if status is None or patch is None:
            return
        changes = _changes(self._before, encode(status))
        if changes:
            _merge(patch.setdefault("status", {}), changes)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Make the merge patch from one state to another."""
    changes: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if key in before and old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            changes[key] = _changes(old, value)
        else:
            changes[key] = value
    return changes


def _merge(target: MutableMapping[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), MutableMapping):
            _merge(target[key], value)
        else:
            target[key] = value
