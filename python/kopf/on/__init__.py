"""The decorators of handlers: ``@kopf.on.create('kopfexamples')`` and others.

All decorators return the function as it is. All options are described in the documentation
of handlers and filters; their names and defaults are those of Kopf.

This module is a folder, so that it wins over the file of the same name when the original Kopf is
installed over this package: then the check below fails with an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kopf import _install

_install.refuse_original()

from kopf._handlers import callbacks, causes, declaring, filters
from kopf._handlers.execution import ErrorsMode
from kopf._handlers.registries import OperatorRegistry
from kopf._structs import references
from kopf._structs.dicts import FieldSpec
from kopf._structs.reviews import Operation

ActivityDecorator = Callable[[callbacks.ActivityFn], callbacks.ActivityFn]
IndexingDecorator = Callable[[callbacks.IndexingFn], callbacks.IndexingFn]
WatchingDecorator = Callable[[callbacks.WatchingFn], callbacks.WatchingFn]
ChangingDecorator = Callable[[callbacks.ChangingFn], callbacks.ChangingFn]
WebhookDecorator = Callable[[callbacks.WebhookFn], callbacks.WebhookFn]
DaemonDecorator = Callable[[callbacks.DaemonFn], callbacks.DaemonFn]
TimerDecorator = Callable[[callbacks.TimerFn], callbacks.TimerFn]


def startup(
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    registry: OperatorRegistry | None = None,
) -> ActivityDecorator:
    """Called before the operator does anything."""
    return declaring.activity(causes.Activity.STARTUP, locals())


def cleanup(
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    registry: OperatorRegistry | None = None,
) -> ActivityDecorator:
    """Called after the operator has stopped everything."""
    return declaring.activity(causes.Activity.CLEANUP, locals())


def login(
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    registry: OperatorRegistry | None = None,
) -> ActivityDecorator:
    """Called when credentials are needed."""
    return declaring.activity(causes.Activity.AUTHENTICATION, locals())


def probe(
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    registry: OperatorRegistry | None = None,
) -> ActivityDecorator:
    """Called when the liveness endpoint is asked."""
    return declaring.activity(causes.Activity.PROBE, locals())


def validate(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    operation: Operation | None = None,
    operations: Collection[Operation] | None = None,
    subresource: str | None = None,
    persistent: bool | None = None,
    side_effects: bool | None = None,
    ignore_failures: bool | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> WebhookDecorator:
    """Called to check an object before it is saved."""
    return declaring.webhook(causes.WebhookType.VALIDATING, locals())


def mutate(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    operation: Operation | None = None,
    operations: Collection[Operation] | None = None,
    subresource: str | None = None,
    persistent: bool | None = None,
    side_effects: bool | None = None,
    ignore_failures: bool | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> WebhookDecorator:
    """Called to change an object before it is saved."""
    return declaring.webhook(causes.WebhookType.MUTATING, locals())


def resume(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    deleted: bool | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> ChangingDecorator:
    """Called for objects that exist when the operator starts."""
    return declaring.changing(None, locals(), initial=True)


def create(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> ChangingDecorator:
    """Called when an object is created."""
    return declaring.changing(causes.Reason.CREATE, locals())


def update(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    old: filters.ValueFilter | None = None,
    new: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> ChangingDecorator:
    """Called when an object is changed."""
    return declaring.changing(causes.Reason.UPDATE, locals(), field_needs_change=True)


def delete(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    optional: bool | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> ChangingDecorator:
    """Called when an object is being deleted; it is held until the handler is done."""
    return declaring.changing(causes.Reason.DELETE, locals(), requires_finalizer=not optional)


def field(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec,
    value: filters.ValueFilter | None = None,
    old: filters.ValueFilter | None = None,
    new: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> ChangingDecorator:
    """Called when a field of an object is added, changed, or removed."""
    return declaring.changing(None, locals(), field_needs_change=True)


def index(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> IndexingDecorator:
    """Called for every object to put it into an index."""
    return declaring.indexing(locals())


def event(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> WatchingDecorator:
    """Called for every event of an object, without retries."""
    return declaring.watching(locals())


def daemon(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    initial_delay: float | callbacks.DelayFn | None = None,
    cancellation_backoff: float | None = None,
    cancellation_timeout: float | None = None,
    cancellation_polling: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> DaemonDecorator:
    """Runs in the background for as long as an object exists."""
    return declaring.daemon(locals())


def timer(
    arg1: str | references.Marker | Callable[[references.Resource], bool] | None = None,
    arg2: str | references.Marker | None = None,
    arg3: str | references.Marker | None = None,
    /,
    *,
    group: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    shortcut: str | None = None,
    category: str | None = None,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    interval: float | None = None,
    initial_delay: float | callbacks.DelayFn | None = None,
    sharp: bool | None = None,
    idle: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    registry: OperatorRegistry | None = None,
) -> TimerDecorator:
    """Called again and again for as long as an object exists."""
    return declaring.timer(locals())


def subhandler(
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
    field: FieldSpec | None = None,
    value: filters.ValueFilter | None = None,
    old: filters.ValueFilter | None = None,
    new: filters.ValueFilter | None = None,
) -> ChangingDecorator:
    """Declares a part of the handler that is running, with its own retries.

    The parent is called again until all its parts are done, so it must declare the same ones.
    """
    return declaring.subhandling_declaration(locals())


def register(
    fn: callbacks.ChangingFn,
    *,
    id: str | None = None,
    param: Any | None = None,
    errors: ErrorsMode | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    backoff: float | None = None,
    labels: filters.MetaFilter | None = None,
    annotations: filters.MetaFilter | None = None,
    when: callbacks.WhenFilterFn | None = None,
) -> callbacks.ChangingFn:
    """Declares a function as a part of the handler that is running."""
    decorator = subhandler(
        id=id,
        param=param,
        errors=errors,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        labels=labels,
        annotations=annotations,
        when=when,
    )
    return decorator(fn)
