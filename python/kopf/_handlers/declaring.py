"""What the decorators do: check the options, make a handler, put it into a registry.

Every function takes the ``locals()`` of a decorator: all its options by their names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kopf._handlers import causes, execution, handlers, registries, subhandling
from kopf._structs import dicts, references

_FnT = TypeVar("_FnT", bound=Callable[..., Any])
_Options = Mapping[str, Any]

_SELECTOR = ("group", "version", "kind", "plural", "singular", "shortcut", "category")
_BASIC = ("param", "errors", "timeout", "retries", "backoff")
_FILTERS = ("labels", "annotations", "when", "value")


def _registry(options: _Options) -> registries.OperatorRegistry:
    given: registries.OperatorRegistry | None = options["registry"]
    return given if given is not None else registries.get_default_registry()


def _basic(options: _Options) -> dict[str, Any]:
    return {name: options.get(name) for name in _BASIC}


def _resource(fn: Callable[..., Any], options: _Options, *, suffix: bool = True) -> dict[str, Any]:
    """Get the fields that all handlers of objects have."""
    _check_values(options)
    _check_filters(options)
    field = dicts.parse_field(options["field"]) or None
    id_suffix = ".".join(field or ()) if suffix else None
    fields = _basic(options) | {name: options[name] for name in _FILTERS}
    fields["fn"] = fn
    fields["id"] = registries.generate_id(fn=fn, id=options["id"], suffix=id_suffix)
    fields["field"] = field
    fields["selector"] = references.Selector(
        options["arg1"],
        options["arg2"],
        options["arg3"],
        **{name: options[name] for name in _SELECTOR},
    )
    return fields


def activity(kind: causes.Activity, options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a handler of an activity."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.ActivityHandler(
            fn=fn,
            id=registries.generate_id(fn=fn, id=options["id"]),
            activity=kind,
            **_basic(options),
        )
        _registry(options)._activities.append(handler)
        return fn

    return decorator


def webhook(kind: causes.WebhookType, options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a handler of admission requests."""

    def decorator(fn: _FnT) -> _FnT:
        names = ("subresource", "persistent", "side_effects", "ignore_failures")
        handler = handlers.WebhookHandler(
            reason=kind,
            operations=_operations(options["operation"], options["operations"]),
            **{name: options[name] for name in names},
            **_resource(fn, options),
        )
        _registry(options)._webhooks.append(handler)
        return fn

    return decorator


def changing(
    reason: causes.Reason | None,
    options: _Options,
    *,
    initial: bool | None = None,
    requires_finalizer: bool | None = None,
    field_needs_change: bool | None = None,
) -> Callable[[_FnT], _FnT]:
    """Declare a handler of changes."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.ChangingHandler(
            reason=reason,
            initial=initial,
            deleted=options.get("deleted"),
            requires_finalizer=requires_finalizer,
            field_needs_change=field_needs_change,
            old=options.get("old"),
            new=options.get("new"),
            **_resource(fn, options),
        )
        _registry(options)._changing.append(handler)
        return fn

    return decorator


def indexing(options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a handler of an index."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.IndexingHandler(**_resource(fn, options, suffix=False))
        _registry(options)._indexing.append(handler)
        return fn

    return decorator


def watching(options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a handler of raw events."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.WatchingHandler(**_resource(fn, options))
        _registry(options)._watching.append(handler)
        return fn

    return decorator


def daemon(options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a daemon."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.DaemonHandler(
            requires_finalizer=True,
            initial_delay=options["initial_delay"],
            cancellation_backoff=options["cancellation_backoff"],
            cancellation_timeout=options["cancellation_timeout"],
            cancellation_polling=options["cancellation_polling"],
            **_resource(fn, options),
        )
        _registry(options)._spawning.append(handler)
        return fn

    return decorator


def timer(options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a timer."""

    def decorator(fn: _FnT) -> _FnT:
        handler = handlers.TimerHandler(
            requires_finalizer=True,
            initial_delay=options["initial_delay"],
            sharp=options["sharp"],
            idle=options["idle"],
            interval=options["interval"],
            **_resource(fn, options),
        )
        _registry(options)._spawning.append(handler)
        return fn

    return decorator


def subhandling_declaration(options: _Options) -> Callable[[_FnT], _FnT]:
    """Declare a sub-handler of the handler that is running."""

    def decorator(fn: _FnT) -> _FnT:
        parent = execution.handler_var.get()
        if not isinstance(parent, handlers.ChangingHandler):
            raise TypeError("Sub-handlers are only supported for resource-changing handlers.")
        _check_parent(parent, options)
        _check_values(options)
        _check_filters(options)
        handler = handlers.ChangingHandler(
            fn=fn,
            id=registries.generate_id(fn=fn, id=options["id"], prefix=parent.id),
            selector=None,
            field=dicts.parse_field(options["field"]) or None,
            old=options["old"],
            new=options["new"],
            field_needs_change=parent.field_needs_change,
            initial=None,
            deleted=None,
            requires_finalizer=None,
            reason=None,
            **_basic(options),
            **{name: options[name] for name in _FILTERS},
        )
        subhandling.subregistry_var.get().append(handler)
        return fn

    return decorator


def _operations(
    operation: str | None, operations: Collection[str] | None
) -> Collection[str] | None:
    if operation is not None:
        warnings.warn(
            "operation= is deprecated, use operations={...}.", DeprecationWarning, stacklevel=1
        )
        operations = frozenset({*(operations or ()), operation})
    if operations is not None and not operations:
        raise ValueError(f"Operations should be either None or non-empty. Got empty {operations}.")
    return operations


def _check_filters(options: _Options) -> None:
    for name, title in (("labels", "label"), ("annotations", "annotation")):
        if any(value is None for value in (options[name] or {}).values()):
            raise ValueError(
                f"`None` for {title} filters is not supported; use kopf.PRESENT or kopf.ABSENT."
            )


def _check_values(options: _Options) -> None:
    value, old, new = options["value"], options.get("old"), options.get("new")
    changed = old is not None or new is not None
    if options["field"] is None and (value is not None or changed):
        raise TypeError("Value/old/new filters are specified without a mandatory field.")
    if value is not None and changed:
        raise TypeError("Either value= or old=/new= can be defined, not both.")


def _check_parent(parent: handlers.ChangingHandler, options: _Options) -> None:
    if options["old"] is None and options["new"] is None:
        return
    on_update = parent.reason == causes.Reason.UPDATE
    on_field = parent.reason is None and not parent.initial
    if not on_update and not on_field:
        raise TypeError("Filters old=/new= can only be used in update handlers.")
