"""Whether a handler is for a cause: the filters."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from kopf._handlers import causes, filters, handlers
from kopf._structs import dicts, references


class _Absent(enum.Enum):
    """The value of a field that is not there."""

    token = enum.auto()


class _Kwargs:
    """The kwargs of a cause, computed when the first callback needs them."""

    def __init__(self, cause: causes.ResourceCause) -> None:
        self._cause = cause
        self._kwargs: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        if self._kwargs is None:
            self._kwargs = self._cause.kwargs
        return self._kwargs


def match(handler: handlers.ResourceHandler, cause: causes.ResourceCause) -> bool:
    """Check all filters of a handler."""
    kwargs = _Kwargs(cause)
    return (
        matches_resource(handler, cause.resource)
        and _matches_subresource(handler, cause)
        and _matches_meta(handler.labels, cause.body.meta.labels, kwargs)
        and _matches_meta(handler.annotations, cause.body.meta.annotations, kwargs)
        and _matches_value(handler, cause, kwargs)
        and _matches_change(handler, cause, kwargs)
        and _matches_when(handler, kwargs)
    )


def prematch(handler: handlers.ResourceHandler, cause: causes.ResourceCause) -> bool:
    """Check all filters but those of the change: whether the handler is for this object."""
    kwargs = _Kwargs(cause)
    return (
        matches_resource(handler, cause.resource)
        and _matches_subresource(handler, cause)
        and _matches_meta(handler.labels, cause.body.meta.labels, kwargs)
        and _matches_meta(handler.annotations, cause.body.meta.annotations, kwargs)
        and _matches_value(handler, cause, kwargs)
        and _matches_when(handler, kwargs)
    )


def matches_resource(handler: handlers.ResourceHandler, resource: references.Resource) -> bool:
    """Check the selector; sub-handlers have none."""
    return handler.selector is None or handler.selector.check(resource)


def _matches_subresource(handler: handlers.ResourceHandler, cause: causes.ResourceCause) -> bool:
    if not isinstance(handler, handlers.WebhookHandler):
        return True
    if not isinstance(cause, causes.WebhookCause):
        return True
    return handler.subresource in ("*", cause.subresource)


def _matches_meta(
    pattern: filters.MetaFilter | None,
    content: Mapping[str, str],
    kwargs: Callable[[], dict[str, Any]],
) -> bool:
    """Check labels or annotations; callbacks get None for an absent key."""
    for key, wanted in (pattern or {}).items():
        if wanted is filters.ABSENT:
            passed = key not in content
        elif wanted is filters.PRESENT:
            passed = key in content
        elif callable(wanted):
            passed = bool(wanted(content.get(key), **kwargs()))
        else:
            passed = key in content and wanted == content[key]
        if not passed:
            return False
    return True


def _passes(
    wanted: filters.ValueFilter, value: object, kwargs: Callable[[], dict[str, Any]]
) -> bool:
    """Check one value of a field; callbacks get None for an absent field."""
    present = value is not _Absent.token
    if wanted is filters.PRESENT:
        return present
    if wanted is filters.ABSENT:
        return not present
    if callable(wanted):
        return bool(wanted(value if present else None, **kwargs()))
    return bool(wanted == value)


def _matches_value(
    handler: handlers.ResourceHandler,
    cause: causes.ResourceCause,
    kwargs: Callable[[], dict[str, Any]],
) -> bool:
    if not handler.field:
        return True
    if isinstance(cause, causes.ChangingCause):
        sources = [cause.new, cause.old]
    else:
        sources = [cause.body]  # type: ignore[list-item]
    wanted = filters.PRESENT if handler.value is None else handler.value
    values = (dicts.resolve(source, handler.field, _Absent.token) for source in sources)
    return any(_passes(wanted, value, kwargs) for value in values)


def _matches_change(
    handler: handlers.ResourceHandler,
    cause: causes.ResourceCause,
    kwargs: Callable[[], dict[str, Any]],
) -> bool:
    if not handler.field:
        return True
    if not isinstance(handler, handlers.ChangingHandler):
        return True
    if not isinstance(cause, causes.ChangingCause):
        return True
    old = dicts.resolve(cause.old, handler.field, _Absent.token)
    new = dicts.resolve(cause.new, handler.field, _Absent.token)
    if handler.field_needs_change and old == new:
        return False
    pairs = ((handler.old, old), (handler.new, new))
    return all(wanted is None or _passes(wanted, value, kwargs) for wanted, value in pairs)


def _matches_when(handler: handlers.ResourceHandler, kwargs: Callable[[], dict[str, Any]]) -> bool:
    return handler.when is None or bool(handler.when(**kwargs()))


_matches_resource = matches_resource  # the name that Kopf's own tests use
