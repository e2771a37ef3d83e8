"""Registries: where decorators put handlers, and where the operator finds them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any, Generic, TypeVar

from kopf._handlers import causes, execution, handlers
from kopf._handlers.matching import _matches_resource as _matches_resource
from kopf._handlers.matching import match as match
from kopf._handlers.matching import matches_resource
from kopf._handlers.matching import prematch as prematch
from kopf._login import piggybacking
from kopf._structs import dicts, ids, references

CauseT = TypeVar("CauseT", bound=execution.Cause)
HandlerT = TypeVar("HandlerT", bound=execution.Handler)
ResourceHandlerT = TypeVar("ResourceHandlerT", bound=handlers.ResourceHandler)


class GenericRegistry(Generic[HandlerT]):
    """Handlers in the order of registration."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: list[HandlerT] = []

    def append(self, handler: HandlerT) -> None:
        self._handlers.append(handler)

    def get_all_handlers(self) -> Collection[HandlerT]:
        return list(self._handlers)


class ActivityRegistry(GenericRegistry[handlers.ActivityHandler]):
    """Handlers of activities. Fallback handlers count only if there are no others."""

    def get_handlers(self, activity: causes.Activity) -> Sequence[handlers.ActivityHandler]:
        return list(_deduplicated(self.iter_handlers(activity=activity)))

    def iter_handlers(self, activity: causes.Activity) -> Iterator[handlers.ActivityHandler]:
        fitting = [h for h in self._handlers if h.activity is None or h.activity == activity]
        regular = [h for h in fitting if h.activity is None or not h._fallback]
        yield from regular or fitting


class ResourceRegistry(GenericRegistry[ResourceHandlerT], Generic[ResourceHandlerT, CauseT]):
    """Handlers of objects."""

    def get_all_selectors(self) -> frozenset[references.Selector]:
        return frozenset(h.selector for h in self._handlers if h.selector is not None)

    def has_handlers(self, resource: references.Resource) -> bool:
        return any(matches_resource(handler, resource) for handler in self._handlers)

    def get_handlers(
        self, cause: CauseT, excluded: Container[ids.HandlerId] = frozenset()
    ) -> Sequence[ResourceHandlerT]:
        return list(_deduplicated(self.iter_handlers(cause=cause, excluded=excluded)))

    def iter_handlers(
        self, cause: CauseT, excluded: Container[ids.HandlerId] = frozenset()
    ) -> Iterator[ResourceHandlerT]:
        for handler in self._handlers:
            if handler.id not in excluded and self._is_for(handler, cause):
                if match(handler, cause):  # type: ignore[arg-type]
                    yield handler

    def _is_for(self, handler: ResourceHandlerT, cause: CauseT) -> bool:
        """Check what is not a filter: the reason of the cause and similar things."""
        return True

    def get_extra_fields(self, resource: references.Resource) -> set[dicts.FieldPath]:
        return set(self.iter_extra_fields(resource=resource))

    def iter_extra_fields(self, resource: references.Resource) -> Iterator[dicts.FieldPath]:
        for handler in self._handlers:
            if handler.field and matches_resource(handler, resource):
                yield handler.field


class IndexingRegistry(ResourceRegistry[handlers.IndexingHandler, causes.IndexingCause]):
    """Handlers of indexes."""


class WatchingRegistry(ResourceRegistry[handlers.WatchingHandler, causes.WatchingCause]):
    """Handlers of raw events."""


class SpawningRegistry(ResourceRegistry[handlers.SpawningHandler, causes.SpawningCause]):
    """Daemons and timers."""

    def requires_finalizer(
        self,
        cause: causes.SpawningCause,
        excluded: Container[ids.HandlerId] = frozenset(),
    ) -> bool:
        return any(
            handler.requires_finalizer and handler.id not in excluded and match(handler, cause)
            for handler in self._handlers
        )


class ChangingRegistry(ResourceRegistry[handlers.ChangingHandler, causes.ChangingCause]):
    """Handlers of changes."""

    def _is_for(self, handler: handlers.ChangingHandler, cause: causes.ChangingCause) -> bool:
        if handler.reason is not None and handler.reason != cause.reason:
            return False
        if handler.initial:
            return cause.initial and (bool(handler.deleted) or not cause.deleted)
        return True

    def requires_finalizer(
        self,
        cause: causes.ResourceCause,
        excluded: Container[ids.HandlerId] = frozenset(),
    ) -> bool:
        return any(
            handler.requires_finalizer and handler.id not in excluded and prematch(handler, cause)
            for handler in self._handlers
        )

    def prematch(self, cause: causes.ChangingCause) -> bool:
        return any(prematch(handler, cause) for handler in self._handlers)

    def get_resource_handlers(
        self, resource: references.Resource
    ) -> Sequence[handlers.ChangingHandler]:
        return list(_deduplicated(h for h in self._handlers if matches_resource(h, resource)))


class WebhooksRegistry(ResourceRegistry[handlers.WebhookHandler, causes.WebhookCause]):
    """Handlers of admission requests."""

    def _is_for(self, handler: handlers.WebhookHandler, cause: causes.WebhookCause) -> bool:
        if cause.reason is not None and cause.reason != handler.reason:
            return False
        if cause.webhook is not None and cause.webhook != handler.id:
            return False
        mutating = handler.reason == causes.WebhookType.MUTATING
        if mutating and cause.operation == "DELETE":
            return set(handler.operations or ()) == {"DELETE"}
        return True


class OperatorRegistry:
    """All handlers of an operator."""

    def __init__(self) -> None:
        super().__init__()
        self._webhooks = WebhooksRegistry()
        self._activities = ActivityRegistry()
        # The order in which the handlers of an event run: indexes are filled first.
        self._indexing, self._watching = IndexingRegistry(), WatchingRegistry()
        self._spawning, self._changing = SpawningRegistry(), ChangingRegistry()
        self._desiring: ResourceRegistry[Any, Any] = ResourceRegistry()


class SmartOperatorRegistry(OperatorRegistry):
    """A registry with logins that are used if the operator has no login handlers."""

    def __init__(self) -> None:
        super().__init__()
        for fn in piggybacking.default_logins():
            handler = handlers.ActivityHandler(
                id=ids.HandlerId(fn.__name__),
                fn=fn,
                param=None,
                errors=execution.ErrorsMode.IGNORED,
                timeout=None,
                retries=None,
                backoff=None,
                activity=causes.Activity.AUTHENTICATION,
                _fallback=True,
            )
            self._activities.append(handler)


def generate_id(
    fn: Callable[..., Any],
    id: str | None,
    prefix: str | None = None,
    suffix: str | None = None,
) -> ids.HandlerId:
    """Make the id of a handler from its name or its function, with the parts around it."""
    name = get_callable_id(fn) if id is None else id
    before, after = [prefix] if prefix else [], [suffix] if suffix else []
    return ids.HandlerId("/".join([*before, str(name), *after]))


def get_callable_id(c: Callable[..., Any] | None) -> str:
    """Get the name of a function, which is the same in the next run of the operator."""
    if c is None:
        raise ValueError("Cannot build a persistent id of None.")
    if isinstance(c, functools.partial):
        return get_callable_id(c.func)
    if hasattr(c, "__wrapped__"):
        return get_callable_id(getattr(c, "__wrapped__", None))
    if isinstance(c, FunctionType) and c.__name__ == "<lambda>":
        code = c.__code__
        return f"lambda:{code.co_filename}:{code.co_firstlineno}"
    if isinstance(c, (FunctionType, MethodType)):
        return str(getattr(c, "__qualname__", getattr(c, "__name__", repr(c))))
    raise ValueError(f"Cannot get id of {c!r}.")


def _deduplicated(src: Iterable[HandlerT]) -> Iterator[HandlerT]:
    """Yield each pair of a function and an id once.

    A function under ``on.create`` and ``on.resume`` is called once even if both apply.
    """
    seen: set[tuple[int, ids.HandlerId]] = set()
    for handler in src:
        key = (id(handler.fn), handler.id)
        if key not in seen:
            seen.add(key)
            yield handler


_default_registry: OperatorRegistry | None = None


def get_default_registry() -> OperatorRegistry:
    """Get the registry that decorators use if no other one is given."""
    global _default_registry
    if _default_registry is None:
        _default_registry = SmartOperatorRegistry()
    return _default_registry


def set_default_registry(registry: OperatorRegistry) -> None:
    """Replace the registry that decorators use."""
    global _default_registry
    _default_registry = registry
