"""Descriptions of handlers for the engine: plain data, with marks where Python has to decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopf._handlers import causes, execution, family, filters, handlers
from kopf._structs import references

_CALLBACK = {"callback": True}
_ACTIVITIES = {
    causes.Activity.STARTUP: "startup",
    causes.Activity.CLEANUP: "cleanup",
    causes.Activity.AUTHENTICATION: "login",
    causes.Activity.PROBE: "probe",
}
_NAMES = ("group", "version", "kind", "plural", "singular", "shortcut", "category")


def _number_or_callback(value: Any) -> Any:
    return dict(_CALLBACK) if callable(value) else value


def _filter(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if value is filters.PRESENT:
        return {"present": True}
    if value is filters.ABSENT:
        return {"absent": True}
    return dict(_CALLBACK) if callable(value) else {"equals": value}


def _meta(pattern: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {key: _filter(value) for key, value in pattern.items()} if pattern else None


def describe_selector(selector: references.Selector | None) -> dict[str, Any] | None:
    """Describe which resources a handler is for."""
    if selector is None:
        return None
    described: dict[str, Any] = {name: getattr(selector, name) for name in _NAMES}
    everything = selector.any_name is references.EVERYTHING
    described["any_name"] = None if everything else selector.any_name
    described["everything"] = everything
    described["callback"] = selector.fn is not None
    return described


def _kind(handler: execution.Handler) -> str:
    if isinstance(handler, handlers.ActivityHandler):
        return _ACTIVITIES[handler.activity] if handler.activity is not None else "activity"
    if isinstance(handler, handlers.WebhookHandler):
        return "mutate" if handler.reason == causes.WebhookType.MUTATING else "validate"
    if isinstance(handler, handlers.IndexingHandler):
        return "index"
    if isinstance(handler, handlers.WatchingHandler):
        return "event"
    if isinstance(handler, handlers.DaemonHandler):
        return "daemon"
    if isinstance(handler, handlers.TimerHandler):
        return "timer"
    if isinstance(handler, handlers.ChangingHandler):
        if handler.reason is not None:
            return str(handler.reason)
        return "resume" if handler.initial else "field"
    if isinstance(handler, family.FamilyHandler):
        return "desired" if isinstance(handler, family.DesiredHandler) else "observe"
    raise TypeError(f"Unknown type of a handler: {handler!r}")


def describe_handler(handler: execution.Handler) -> dict[str, Any]:
    """Describe a handler. Callables are not included: they are in the handler itself."""
    described: dict[str, Any] = {
        "kind": _kind(handler),
        "id": str(handler.id),
        "errors": None if handler.errors is None else handler.errors.name.lower(),
        "timeout": handler.timeout,
        "retries": handler.retries,
        "backoff": handler.backoff,
    }
    if isinstance(handler, handlers.ActivityHandler):
        described["fallback"] = handler._fallback
    if isinstance(handler, handlers.ResourceHandler):
        described["selector"] = describe_selector(handler.selector)
        described["labels"] = _meta(handler.labels)
        described["annotations"] = _meta(handler.annotations)
        described["when"] = None if handler.when is None else dict(_CALLBACK)
        described["field"] = None if handler.field is None else list(handler.field)
        described["value"] = _filter(handler.value)
    if isinstance(handler, family.DesiredHandler):
        described |= {"grants": list(handler.grants), "binds": list(handler.binds)}
    described |= _describe_specifics(handler)
    return described


def _describe_specifics(handler: execution.Handler) -> dict[str, Any]:
    if isinstance(handler, handlers.ChangingHandler):
        return {
            "old": _filter(handler.old),
            "new": _filter(handler.new),
            "field_needs_change": handler.field_needs_change,
            "deleted": handler.deleted,
            "optional": not handler.requires_finalizer,
        }
    if isinstance(handler, handlers.DaemonHandler):
        return {
            "initial_delay": _number_or_callback(handler.initial_delay),
            "cancellation_backoff": handler.cancellation_backoff,
            "cancellation_timeout": handler.cancellation_timeout,
            "cancellation_polling": handler.cancellation_polling,
        }
    if isinstance(handler, handlers.TimerHandler):
        return {
            "initial_delay": _number_or_callback(handler.initial_delay),
            "interval": handler.interval,
            "idle": handler.idle,
            "sharp": handler.sharp,
        }
    if isinstance(handler, handlers.WebhookHandler):
        operations = handler.operations
        return {
            "operations": None if operations is None else list(operations),
            "subresource": handler.subresource,
            "persistent": handler.persistent,
            "side_effects": handler.side_effects,
            "ignore_failures": handler.ignore_failures,
        }
    return {}
