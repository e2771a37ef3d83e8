"""Handlers with annotated parameters: which of them get instances of models, and of which.

``spec`` and ``status`` are annotated with their models; ``body``, ``old`` and ``new`` with the
class of the resource. Handlers of a field annotate ``old`` and ``new`` with the field's model.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from kopf._handlers import execution, handlers, invocation
from kopf._models.flavours import flavour_of, is_model, name_of
from kopf._models.resources import is_resource, resource_of

_SECTIONS = ("spec", "status")
_WHOLE = ("body", "old", "new")


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
    if model is None:
        return {}  # Kopf does not look at annotations, so operators may have any
    function = _function(handler.fn)
    annotations = getattr(function, "__annotations__", {})
    found: dict[str, Any] = {}
    for name in (*_SECTIONS, *_WHOLE):
        if name in annotations:
            tp = _resolved(handler, function, name, annotations[name], model)
            if flavour_of(tp) is not None or is_resource(tp):
                _check(handler, name, tp, model)
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
    model: type,
) -> Any:
    """Get the type of an annotation, which may be a text; none for unions."""
    tp = annotation
    if isinstance(annotation, str):
        try:
            names = inspect.getclosurevars(function).nonlocals if callable(function) else {}
            tp = eval(annotation, {**getattr(function, "__globals__", {}), **names})
        except Exception as e:
            tp = _known_by_name(annotation, model)
            if tp is None:
                raise TypeError(
                    f"{handler}: the annotation {annotation!r} of {name!r} cannot be resolved: {e}"
                ) from None
    if typing.get_origin(tp) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(tp) if arg is not type(None)]
        tp = rest[0] if len(rest) == 1 else None
    return tp


def _known_by_name(annotation: str, model: type) -> Any:
    """Find a class of the resource by its name: classes inside of functions have no other way."""
    declared = resource_of(model)
    names = {part.strip() for part in annotation.split("|")} - {"None"}
    models = (model, declared.spec, declared.status)
    return next((cls for cls in models if {getattr(cls, "__name__", None)} == names), None)


def _check(handler: handlers.ResourceHandler, name: str, tp: Any, model: type) -> None:
    """Refuse the class of something else than what the parameter is."""
    field = handler.field if name in ("old", "new") else None
    path = (name,) if name in _SECTIONS else tuple(field or ())
    declared = resource_of(model)
    if len(path) > 1:
        what, known = ".".join(path), "is not the whole object"  # its own class is not known
        fits = not is_resource(tp)
    else:
        what = f"the {path[0]} of {declared.kind}" if path else "the object"
        expected = getattr(declared, path[0], None) if path else model
        known = f"is {name_of(expected)}" if expected is not None else "has no class"
        fits = expected is tp
    if not fits:
        raise TypeError(
            f"{handler}: the parameter {name!r} is annotated with {name_of(tp)}, but {what} {known}"
        )


def _wrapped(fn: Any, wanted: Mapping[str, Any]) -> Any:
    """Wrap a function; always by the same wrapper, since functions are compared by identity."""
    key = tuple(wanted.items())
    known: dict[Any, Any] = getattr(fn, "__dict__", {}).setdefault("__kopf_typed__", {})
    if key not in known:
        known[key] = _wrapper(fn, wanted)
    return known[key]


def _wrapper(fn: Callable[..., Any], wanted: Mapping[str, Any]) -> Callable[..., Any]:
    from kopf._models.instances import Typed  # slow to import, rarely needed

    if invocation.is_async_fn(fn):

        @functools.wraps(fn)
        async def asynchronous(**kwargs: Any) -> Any:
            with Typed(wanted, kwargs):
                return _result(await fn(**kwargs))

        return asynchronous

    @functools.wraps(fn)
    def synchronous(**kwargs: Any) -> Any:
        with Typed(wanted, kwargs):
            return _result(fn(**kwargs))

    return synchronous


def _result(value: Any) -> Any:
    from kopf._models.conversion import encode

    return encode(value) if is_model(value) else value
