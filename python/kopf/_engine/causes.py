"""Causes of calls and decisions, made from what the engine tells."""

from __future__ import annotations

import collections.abc
import copy
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kopf._handlers import causes, family, stoppers
from kopf._logs import loggers
from kopf._settings import configuration
from kopf._structs import bodies, diffs, ephemera, patches, references

if TYPE_CHECKING:
    from kopf import _native


class _SharedPatch:
    """A patch that is used by calls at the moment: those of sub-handlers share it."""

    def __init__(self, patch: patches.Patch) -> None:
        self.patch = patch
        self.users = 0
        self.known = copy.deepcopy(dict(patch)) if patch else {}
        self.functions = 0


class _Lazy:
    """A field of a cause that is made on first use; most handlers need few of them."""

    __slots__ = ("_make", "_name")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, cause: Any, owner: type | None = None) -> Any:
        if cause is None:
            return self
        value = cause.__dict__[self._name] = self._make(cause)
        return value


def _reference(cause: Any) -> tuple[str, str, str, str, str | None]:
    found: tuple[str, str, str, str, str | None] = cause._matter.reference()
    return found


class _LazyFields:
    """The fields that all causes of objects have. Instances are made without ``__init__``."""

    _maker: CauseMaker
    _matter: _native.Matter

    indices: Any = _Lazy(lambda cause: cause._maker.indices)
    memo: Any = _Lazy(lambda cause: cause._maker.memo_of(cause._matter))
    resource: Any = _Lazy(lambda cause: cause._maker.resource(cause._matter))
    body: Any = _Lazy(lambda cause: bodies.Body(cause._matter.body()))
    patch: Any = _Lazy(lambda cause: cause._maker._acquire(cause._matter, cause.body))


def _make_logger(kind: type[loggers.ObjectLogger]) -> _Lazy:
    return _Lazy(lambda cause: kind.of(_reference(cause), cause._maker.settings))


class _ChangingCause(_LazyFields, causes.ChangingCause):
    logger: Any = _make_logger(loggers.ObjectLogger)
    initial: Any = _Lazy(lambda cause: cause._matter.initial)
    reason: Any = _Lazy(lambda cause: causes.Reason(cause._matter.reason))
    diff: Any = _Lazy(lambda cause: _diff_of_change(cause))
    old: Any = _Lazy(lambda cause: cause._matter.old())
    new: Any = _Lazy(lambda cause: cause._matter.new())


class _SpawningCause(_LazyFields, causes.SpawningCause):
    logger: Any = _make_logger(loggers.ObjectLogger)
    reset: Any = _Lazy(lambda _: False)


class _DaemonCause(_LazyFields, causes.DaemonCause):
    logger: Any = _make_logger(loggers.ObjectLogger)


class _IndexingCause(_LazyFields, causes.IndexingCause):
    logger: Any = _make_logger(loggers.TerseObjectLogger)


class _WatchingCause(_LazyFields, causes.WatchingCause):
    logger: Any = _make_logger(loggers.LocalObjectLogger)
    type: Any = _Lazy(lambda cause: cause._matter.event_type)
    event: Any = _Lazy(lambda cause: {"type": cause.type, "object": _plain(cause.body)})


_CLASSES: dict[str, type[Any]] = {
    "change": _ChangingCause,
    "background": _SpawningCause,
    "index": _IndexingCause,
    "event": _WatchingCause,
}
for _class in (*_CLASSES.values(), _DaemonCause):
    _class.__qualname__ = _class.__name__ = _class.__name__.removeprefix("_")


class CauseMaker:
    """Makes causes; keeps what they have in common."""

    def __init__(
        self,
        *,
        settings: configuration.OperatorSettings,
        memo: ephemera.AnyMemo,
        indices: ephemera.Indices,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.indices = indices
        self._memo = memo
        self._resources: dict[tuple[str, str, str], references.Resource] = {}
        self._patches: dict[int, _SharedPatch] = {}

    def make(
        self, matter: _native.Matter, stopper: stoppers.DaemonStopper | None = None
    ) -> causes.BaseCause:
        """Make the cause of a call. To be followed by ``release()`` when the call ends."""
        kind = matter.kind
        cause_class = _CLASSES.get(kind)
        if cause_class is None:
            return self._make_rare_cause(matter, kind)
        if stopper is not None:
            cause_class = _DaemonCause
        cause: Any = object.__new__(cause_class)
        cause._maker = self
        cause._matter = matter
        if stopper is not None:
            cause.stopper = stopper
        return cause  # type: ignore[no-any-return]

    def _make_rare_cause(self, matter: _native.Matter, kind: str) -> causes.BaseCause:
        if kind == "admission":
            return self._make_webhook_cause(matter)
        if kind == "desired":
            return self._make_family_cause(matter)
        if kind != "activity":
            raise ValueError(f"Unknown kind of a cause: {kind}")
        activity = causes.Activity(matter.activity)
        return causes.ActivityCause(
            logger=logging.getLogger(f"kopf.activities.{activity.value}"),
            indices=self.indices,
            memo=self._memo,
            activity=activity,
            settings=self.settings,
        )

    def _make_family_cause(self, matter: _native.Matter) -> family.FamilyCause:
        body = bodies.Body(matter.body())
        return family.FamilyCause(
            logger=loggers.ObjectLogger(body=body, settings=self.settings),
            indices=self.indices,
            memo=self.memo_of(matter),
            resource=self.resource(matter),
            patch=self._acquire(matter, body),
            body=body,
        )

    def _make_webhook_cause(self, matter: _native.Matter) -> causes.WebhookCause:
        review = matter.review()
        assert review is not None
        old, new = review.pop("old"), review.pop("new")
        body = bodies.Body(matter.body())
        return causes.WebhookCause(
            logger=loggers.LocalObjectLogger(body=body, settings=self.settings),
            indices=self.indices,
            memo=self.memo_of(matter),
            resource=self.resource(matter),
            patch=self._acquire(matter, body),
            body=body,
            reason=None,
            webhook=None,
            sslpeer=review.pop("sslpeer", {}),
            warnings=[],
            old=None if old is None else bodies.Body(old),
            new=None if new is None else bodies.Body(new),
            diff=_diff(matter),
            **review,
        )

    def resource(self, matter: _native.Matter) -> references.Resource:
        """Get the resource of an object; the same one every time."""
        key = matter.resource_key()
        found = self._resources.get(key)
        if found is None:
            found = self._resources[key] = resource_of(matter.resource())
        return found

    def memo_of(self, matter: _native.Matter) -> ephemera.AnyMemo:
        """Get the memo of an object; the same one every time."""
        memo: ephemera.AnyMemo | None = matter.memo()
        if memo is None:
            memo = copy.copy(self._memo)
            matter.set_memo(memo)
        return memo

    def _acquire(self, matter: _native.Matter, body: bodies.Body) -> patches.Patch:
        key = matter.patch_key
        if key is None:
            return patches.Patch(body=body)
        shared = self._patches.get(key)
        if shared is None:
            shared = _SharedPatch(patches.Patch(matter.patch(), body=body))
            self._patches[key] = shared
        shared.users += 1
        return shared.patch

    def release(self, cause: causes.BaseCause, matter: _native.Matter) -> None:
        """Hand over what a call has put into its patch, if it has looked at it."""
        if "patch" not in vars(cause):
            return
        key = matter.patch_key
        shared = None if key is None else self._patches.get(key)
        if key is None or shared is None:
            return
        shared.users -= 1
        if shared.users == 0:
            del self._patches[key]
        patch, functions = shared.patch, shared.patch.fns[shared.functions :]
        if functions or dict(patch) != shared.known:
            matter.absorb(dict(patch), functions)
            if shared.users:
                shared.known = copy.deepcopy(dict(patch))
            shared.functions = len(patch.fns)


def resource_of(fields: dict[str, Any]) -> references.Resource:
    """Make a resource from the fields that the engine knows."""
    for name in ("shortcuts", "categories", "subresources", "verbs"):
        fields[name] = frozenset(fields[name])
    return references.Resource(**fields)


def _plain(body: bodies.Body) -> dict[str, Any]:
    """Convert a body to a dict for ``json.dumps()`` and others; the body stays a view of it."""
    raw: Any = body._src
    plain: dict[str, Any] = raw.to_dict()
    body._src = plain
    return plain


def _diff_of_change(cause: Any) -> diffs.Diff:
    if cause._matter.is_addition:
        return diffs.Diff([diffs.DiffItem(diffs.DiffOperation.ADD, (), None, cause.new)])
    return _diff(cause._matter)


def _diff(matter: _native.Matter) -> diffs.Diff:
    items = matter.diff()
    if not items:
        return diffs.EMPTY
    return diffs.Diff(
        diffs.DiffItem(diffs.DiffOperation(operation), field, old, new)
        for operation, field, old, new in items
    )


def register_mappings() -> None:
    """Let ``isinstance(..., Mapping)`` work for bodies of the engine."""
    from kopf import _native

    abstract: Any = collections.abc.Mapping
    abstract.register(_native.RawBody)
