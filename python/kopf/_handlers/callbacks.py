"""Signatures of the functions that users write, and combinators of filters."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from kopf._compat import LoggerAdapter
from kopf._handlers import stoppers
from kopf._handlers.invocation import SyncOrAsync
from kopf._structs import bodies, diffs, patches, references, reviews

if TYPE_CHECKING:
    from kopf._settings import configuration

Logger = logging.Logger | LoggerAdapter


class ActivityFn(Protocol):
    """A function of ``on.startup``, ``cleanup``, ``login``, ``probe``."""

    def __call__(
        self,
        *,
        settings: configuration.OperatorSettings,
        retry: int,
        started: datetime.datetime,
        runtime: datetime.timedelta,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class IndexingFn(Protocol):
    """A function of ``kopf.index``."""

    def __call__(
        self,
        *,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class WatchingFn(Protocol):
    """A function of ``on.event``."""

    def __call__(
        self,
        *,
        type: str,
        event: bodies.RawEvent,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class ChangingFn(Protocol):
    """A function of ``on.create``, ``update``, ``delete``, ``resume``, ``field``."""

    def __call__(
        self,
        *,
        retry: int,
        started: datetime.datetime,
        runtime: datetime.timedelta,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        reason: str,
        diff: diffs.Diff,
        old: bodies.BodyEssence | Any | None,
        new: bodies.BodyEssence | Any | None,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class WebhookFn(Protocol):
    """A function of ``on.validate`` and ``on.mutate``."""

    def __call__(
        self,
        *,
        dryrun: bool,
        warnings: list[str],
        subresource: str | None,
        userinfo: reviews.UserInfo,
        sslpeer: reviews.SSLPeer,
        headers: reviews.Headers,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class DaemonFn(Protocol):
    """A function of ``kopf.daemon``."""

    def __call__(
        self,
        *,
        stopped: stoppers.DaemonStopped,
        retry: int,
        started: datetime.datetime,
        runtime: datetime.timedelta,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class TimerFn(Protocol):
    """A function of ``kopf.timer``."""

    def __call__(
        self,
        *,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> SyncOrAsync[object | None]: ...


class DelayFn(Protocol):
    """A function that computes ``initial_delay``; never async."""

    def __call__(
        self,
        *,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> float: ...


class WhenFilterFn(Protocol):
    """A function of the filter ``when``; never async."""

    def __call__(
        self,
        *,
        type: str,
        event: bodies.RawEvent,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        diff: diffs.Diff,
        old: bodies.BodyEssence | Any | None,
        new: bodies.BodyEssence | Any | None,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> bool: ...


class MetaFilterFn(Protocol):
    """A function that filters a value; never async."""

    def __call__(
        self,
        value: Any,
        *,
        type: str,
        annotations: bodies.Annotations,
        labels: bodies.Labels,
        body: bodies.Body,
        meta: bodies.Meta,
        spec: bodies.Spec,
        status: bodies.Status,
        resource: references.Resource,
        uid: str,
        name: str,
        namespace: str | None,
        patch: patches.Patch,
        logger: Logger,
        memo: Any,
        param: Any = ...,
        **kwargs: Any,
    ) -> bool: ...


SpawningFn = DaemonFn | TimerFn
_FnT = TypeVar("_FnT", WhenFilterFn, MetaFilterFn)


def not_(fn: _FnT) -> _FnT:
    """A filter that passes if the given one does not."""

    def not_fn(*args: Any, **kwargs: Any) -> bool:
        return not fn(*args, **kwargs)

    return cast(_FnT, not_fn)


def all_(fns: Collection[_FnT]) -> _FnT:
    """A filter that passes if all given ones pass."""

    def all_fn(*args: Any, **kwargs: Any) -> bool:
        return all(fn(*args, **kwargs) for fn in fns)

    return cast(_FnT, all_fn)


def any_(fns: Collection[_FnT]) -> _FnT:
    """A filter that passes if any of the given ones passes."""

    def any_fn(*args: Any, **kwargs: Any) -> bool:
        return any(fn(*args, **kwargs) for fn in fns)

    return cast(_FnT, any_fn)


def none_(fns: Collection[_FnT]) -> _FnT:
    """A filter that passes if none of the given ones passes."""

    def none_fn(*args: Any, **kwargs: Any) -> bool:
        return not any(fn(*args, **kwargs) for fn in fns)

    return cast(_FnT, none_fn)
