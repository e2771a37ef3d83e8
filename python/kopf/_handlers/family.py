"""Children of objects: handlers that tell which there should be, and handlers that look at them.

Kopf has no such handlers. The terms and the options are those of the Rust attributes
``#[kopf::on::desired]`` and ``#[kopf::on::observe]``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar, TypeVar

from kopf._handlers import callbacks, causes, declaring, execution, filters, handlers, registries
from kopf._structs import dicts, references

_FnT = TypeVar("_FnT", bound=Callable[..., Any])

ChildSpec = str | tuple[str, ...] | type
"""A kind of children: ``"deployments.apps"``, ``("apps/v1", "deployments")``, or a typed class."""


@dataclasses.dataclass
class FamilyCause(causes.ResourceCause):
    """An object or one of its children has changed.

    Functions that name the children get no patch: they change nothing else.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices", "patch"})


@dataclasses.dataclass(frozen=True)
class FamilyHandler(handlers.ResourceHandler):
    """A handler of an object and its children."""

    children: tuple[ChildSpec, ...]
    needs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class DesiredHandler(FamilyHandler):
    """A function that returns the children that an object should have."""

    grants: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ObserveHandler(FamilyHandler):
    """A function that concludes something from an object and its children."""


def desired(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | type | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    children: Collection[ChildSpec],
    grants: Collection[str] = (),
    binds: Collection[str] = (),
    needs: Collection[str] = (),
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: execution.ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: dicts.FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: registries.OperatorRegistry | None = None,
) -> Callable[[_FnT], _FnT]:
    """Tells which children an object should have: the function returns their manifests.

    They are applied, watched, repaired and pruned; the condition ``Ready`` of the object reports
    how they are. ``children`` are the kinds that are returned. ``grants`` and ``binds`` tell what
    the Roles and bindings among them grant, ``needs`` what the function does by itself.
    """
    options = locals()

    def decorator(fn: _FnT) -> _FnT:
        handler = DesiredHandler(
            children=_checked(fn, "children", children),
            grants=tuple(grants),
            binds=tuple(binds),
            needs=tuple(needs),
            **declaring._resource(fn, options),
        )
        declaring._registry(options)._desiring.append(handler)
        return fn

    return decorator


def observe(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | type | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    children: Collection[ChildSpec],
    needs: Collection[str] = (),
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: execution.ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: dicts.FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: registries.OperatorRegistry | None = None,
) -> Callable[[_FnT], _FnT]:
    """Called when an object or one of its children changes, to conclude something from all of them.

    The kwarg ``owned`` has the children: ``owned["pods"]`` is a list of them.
    """
    options = locals()

    def decorator(fn: _FnT) -> _FnT:
        handler = ObserveHandler(
            children=_checked(fn, "children", children),
            needs=tuple(needs),
            **declaring._resource(fn, options),
        )
        declaring._registry(options)._desiring.append(handler)
        return fn

    return decorator


def needs(*rights: str) -> Callable[[_FnT], _FnT]:
    """Declares what a handler does to the cluster by itself: ``@kopf.needs("create,patch pods")``.

    The generated roles include it. To be used together with any decorator of handlers.
    """

    def decorator(fn: _FnT) -> _FnT:
        vars(fn)["__kopf_needs__"] = (*vars(fn).get("__kopf_needs__", ()), *rights)
        return fn

    return decorator


def children(*kinds: ChildSpec) -> Callable[[_FnT], _FnT]:
    """Lets a handler look at the children of its object: ``@kopf.children("pods")``.

    The kwarg ``owned`` has them, as in observers. Changes of the children do not call the handler.
    To be used together with any decorator of handlers of changes, events, daemons and timers.
    """

    def decorator(fn: _FnT) -> _FnT:
        checked = _checked(fn, "kopf.children()", kinds)
        vars(fn)["__kopf_children__"] = (*vars(fn).get("__kopf_children__", ()), *checked)
        return fn

    return decorator


def _checked(
    fn: Callable[..., Any], option: str, kinds: Collection[ChildSpec]
) -> tuple[ChildSpec, ...]:
    if isinstance(kinds, str) or not kinds:
        name = getattr(fn, "__qualname__", repr(fn))
        raise TypeError(
            f"{name}: say which kinds of children there are: {option} is a list such as "
            f"['services', 'deployments.apps']"
        )
    for kind in kinds:
        selector_of(kind)
    return tuple(kinds)


def selector_of(kind: ChildSpec) -> references.Selector:
    """Get the selector of a kind of children."""
    args: tuple[Any, ...] = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(kind, type) and not hasattr(kind, "__kopf_resource__"):
        raise TypeError(f"{kind.__qualname__} is not a resource: decorate it with @kopf.resource")
    return references.Selector(*args)


def children_of(handler: execution.Handler) -> tuple[ChildSpec, ...]:
    """Get the kinds of children that a handler looks at."""
    if isinstance(handler, FamilyHandler):
        return handler.children
    return _marks(handler.fn, "__kopf_children__")


def needs_of(handler: execution.Handler) -> tuple[str, ...]:
    """Get what a handler does to the cluster by itself."""
    own: Iterable[str] = handler.needs if isinstance(handler, FamilyHandler) else ()
    return (*own, *_marks(handler.fn, "__kopf_needs__"))


def _marks(fn: Any, name: str) -> tuple[Any, ...]:
    """Get what a decorator has left on a function, also inside wrappers and partials."""
    while fn is not None:
        found: tuple[Any, ...] | None = getattr(fn, "__dict__", {}).get(name)
        if found:
            return found
        fn = getattr(fn, "__wrapped__", getattr(fn, "func", None))
    return ()
