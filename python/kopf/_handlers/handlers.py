"""Declarations of handlers, as the decorators make them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection

from kopf._handlers import callbacks, causes, execution, filters
from kopf._structs import dicts, diffs, references


@dataclasses.dataclass(frozen=True)
class ActivityHandler(execution.Handler):
    """A handler of startup, cleanup, login, or probe."""

    fn: callbacks.ActivityFn  # pyright: ignore[reportIncompatibleMethodOverride]
    activity: causes.Activity | None
    _fallback: bool = False

    def __str__(self) -> str:
        return f"Activity {self.id!r}"


@dataclasses.dataclass(frozen=True)
class ResourceHandler(execution.Handler):
    """A handler of objects; only sub-handlers have no selector."""

    selector: references.Selector | None
    labels: filters.MetaFilter | None
    annotations: filters.MetaFilter | None
    when: callbacks.WhenFilterFn | None
    field: dicts.FieldPath | None
    value: filters.ValueFilter | None

    def adjust_cause(self, cause: execution.CauseT) -> execution.CauseT:
        """Handlers of a field see the old and new values and the diff of this field."""
        if self.field is None or not isinstance(cause, causes.ChangingCause):
            return cause
        return dataclasses.replace(
            cause,
            old=dicts.resolve(cause.old, self.field, None),
            new=dicts.resolve(cause.new, self.field, None),
            diff=diffs.reduce(cause.diff, self.field),
        )


@dataclasses.dataclass(frozen=True)
class WebhookHandler(ResourceHandler):
    """A handler of admission requests."""

    fn: callbacks.WebhookFn  # pyright: ignore[reportIncompatibleMethodOverride]
    reason: causes.WebhookType
    operations: Collection[str] | None
    subresource: str | None
    persistent: bool | None
    side_effects: bool | None
    ignore_failures: bool | None

    def __str__(self) -> str:
        return f"Webhook {self.id!r}"

    @property
    def operation(self) -> str | None:
        """Deprecated: the only operation."""
        warnings.warn(
            "handler.operation is deprecated, use handler.operations",
            DeprecationWarning,
            stacklevel=1,
        )
        if not self.operations:
            return None
        if len(self.operations) > 1:
            raise ValueError(
                f"{len(self.operations)} operations in the handler. Use it as handler.operations."
            )
        return next(iter(self.operations))


@dataclasses.dataclass(frozen=True)
class IndexingHandler(ResourceHandler):
    """A handler that fills an index."""

    fn: callbacks.IndexingFn  # pyright: ignore[reportIncompatibleMethodOverride]

    def __str__(self) -> str:
        return f"Indexer {self.id!r}"


@dataclasses.dataclass(frozen=True)
class WatchingHandler(ResourceHandler):
    """A handler of raw events."""

    fn: callbacks.WatchingFn  # pyright: ignore[reportIncompatibleMethodOverride]


@dataclasses.dataclass(frozen=True)
class ChangingHandler(ResourceHandler):
    """A handler of changes, with progress and retries."""

    fn: callbacks.ChangingFn  # pyright: ignore[reportIncompatibleMethodOverride]
    reason: causes.Reason | None
    initial: bool | None
    deleted: bool | None
    requires_finalizer: bool | None
    field_needs_change: bool | None
    old: filters.ValueFilter | None
    new: filters.ValueFilter | None


@dataclasses.dataclass(frozen=True)
class SpawningHandler(ResourceHandler):
    """A handler in the background of an object."""

    requires_finalizer: bool | None
    initial_delay: float | callbacks.DelayFn | None


@dataclasses.dataclass(frozen=True)
class DaemonHandler(SpawningHandler):
    """A handler that runs for as long as the object exists."""

    fn: callbacks.DaemonFn  # pyright: ignore[reportIncompatibleMethodOverride]
    cancellation_backoff: float | None
    cancellation_timeout: float | None
    cancellation_polling: float | None

    def __str__(self) -> str:
        return f"Daemon {self.id!r}"


@dataclasses.dataclass(frozen=True)
class TimerHandler(SpawningHandler):
    """A handler that runs again and again."""

    fn: callbacks.TimerFn  # pyright: ignore[reportIncompatibleMethodOverride]
    sharp: bool | None
    idle: float | None
    interval: float | None

    def __str__(self) -> str:
        return f"Timer {self.id!r}"
