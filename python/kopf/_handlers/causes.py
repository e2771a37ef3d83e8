"""Causes: why handlers are called, and the kwargs that come with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from kopf._compat import StrEnum
from kopf._handlers import execution, stoppers
from kopf._settings import configuration
from kopf._structs import (
    bodies,
    diffs,
    ephemera,
    finalizers,
    ids,
    patches,
    references,
    reviews,
)


class Activity(StrEnum):
    """What the operator does apart from objects."""

    STARTUP = "startup"
    CLEANUP = "cleanup"
    AUTHENTICATION = "authentication"
    PROBE = "probe"


class WebhookType(StrEnum):
    """The two types of admission webhooks."""

    VALIDATING = "validating"
    MUTATING = "mutating"

    def __str__(self) -> str:
        return str(self.value)


class Reason(StrEnum):
    """What happened to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    NOOP = "noop"
    FREE = "free"
    GONE = "gone"

    def __str__(self) -> str:
        return str(self.value)


HANDLER_REASONS = (Reason.CREATE, Reason.UPDATE, Reason.DELETE, Reason.RESUME)
REACTOR_REASONS = (Reason.NOOP, Reason.FREE, Reason.GONE)
ALL_REASONS = HANDLER_REASONS + REACTOR_REASONS
TITLES = {
    Reason.CREATE.value: "creation",
    Reason.UPDATE.value: "updating",
    Reason.DELETE.value: "deletion",
    Reason.RESUME.value: "resuming",
}


@dataclasses.dataclass
class BaseCause(execution.Cause):
    """What all causes have. Indexes become kwargs, and win over other kwargs."""

    indices: ephemera.Indices
    memo: ephemera.AnyMemo

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices"})

    @property
    def _super_kwargs(self) -> dict[str, Any]:
        return dict(self.indices)


@dataclasses.dataclass
class ActivityCause(BaseCause):
    """An activity of the operator."""

    activity: Activity
    settings: configuration.OperatorSettings


@dataclasses.dataclass
class ResourceCause(BaseCause):
    """Anything about one object."""

    resource: references.Resource
    patch: patches.Patch
    body: bodies.Body

    @property
    def _kwargs(self) -> dict[str, Any]:
        kwargs = super()._kwargs
        body = self.body
        meta = body.metadata
        kwargs["spec"] = body.spec
        kwargs["meta"] = meta
        kwargs["status"] = body.status
        raw = body.get("metadata")
        known: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        kwargs["uid"] = known.get("uid")
        kwargs["name"] = known.get("name")
        kwargs["namespace"] = known.get("namespace")
        kwargs["labels"] = meta.labels
        kwargs["annotations"] = meta.annotations
        return kwargs


@dataclasses.dataclass
class WebhookCause(ResourceCause):
    """An admission request."""

    dryrun: bool
    reason: WebhookType | None
    webhook: ids.HandlerId | None
    headers: reviews.Headers
    sslpeer: reviews.SSLPeer
    userinfo: reviews.UserInfo
    warnings: list[str]
    operation: reviews.Operation | None
    subresource: str | None
    old: bodies.Body | None = None
    new: bodies.Body | None = None
    diff: diffs.Diff | None = None

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices", "reason", "webhook"})


@dataclasses.dataclass
class IndexingCause(ResourceCause):
    """An object is indexed."""


@dataclasses.dataclass
class WatchingCause(ResourceCause):
    """An event came, as it is."""

    type: bodies.RawEventType
    event: bodies.RawEvent


@dataclasses.dataclass
class SpawningCause(ResourceCause):
    """An object may need daemons and timers."""

    reset: bool

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices", "reset"})


@dataclasses.dataclass
class ChangingCause(ResourceCause):
    """An object was created, changed, deleted, or seen again after a restart."""

    initial: bool
    reason: Reason
    diff: diffs.Diff = diffs.EMPTY
    old: bodies.BodyEssence | None = None
    new: bodies.BodyEssence | None = None

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices", "initial"})

    @property
    def deleted(self) -> bool:
        """Whether the deletion of the object is requested."""
        return finalizers.is_deletion_ongoing(self.body)


@dataclasses.dataclass
class DaemonCause(ResourceCause):
    """A daemon or a timer of an object, for all of its life."""

    stopper: stoppers.DaemonStopper

    _hidden: ClassVar[frozenset[str]] = frozenset({"indices", "stopper"})

    @property
    def _sync_kwargs(self) -> dict[str, Any]:
        return super()._sync_kwargs | {"stopped": self.stopper.sync_waiter}

    @property
    def _async_kwargs(self) -> dict[str, Any]:
        return super()._async_kwargs | {"stopped": self.stopper.async_waiter}


def detect_watching_cause(
    raw_event: bodies.RawEvent, body: bodies.Body, **kwargs: Any
) -> WatchingCause:
    """Make the cause of a raw event."""
    return WatchingCause(event=raw_event, type=raw_event["type"], body=body, **kwargs)


def detect_spawning_cause(body: bodies.Body, **kwargs: Any) -> SpawningCause:
    """Make the cause for daemons and timers."""
    return SpawningCause(body=body, **kwargs)


def detect_changing_cause(
    *,
    finalizer: str,
    raw_event: bodies.RawEvent,
    body: bodies.Body,
    old: bodies.BodyEssence | None = None,
    new: bodies.BodyEssence | None = None,
    diff: diffs.Diff | None = None,
    initial: bool = False,
    **kwargs: Any,
) -> ChangingCause:
    """Conclude what happened to an object. The first reason that applies wins."""
    if raw_event["type"] == "DELETED":
        reason = Reason.GONE
    elif finalizers.is_deletion_ongoing(body):
        held = finalizers.is_deletion_blocked(body, finalizer)
        reason = Reason.DELETE if held else Reason.FREE
    elif old is None:
        reason, initial = Reason.CREATE, False
    elif diff:
        reason = Reason.UPDATE
    else:
        reason = Reason.RESUME if initial else Reason.NOOP
    return ChangingCause(
        reason=reason,
        initial=initial,
        body=body,
        old=old,
        new=new,
        diff=diffs.EMPTY if diff is None else diff,
        **kwargs,
    )
