"""Causes of calls and decisions, made from what the engine tells."""

from __future__ import annotations

import collections.abc
import copy
import logging
from typing import TYPE_CHECKING, Any

from kopf._handlers import causes, stoppers
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
        self.known = copy.deepcopy(dict(patch))
        self.functions = 0


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
        self._settings = settings
        self._memo = memo
        self._indices = indices
        self._resources: dict[tuple[str, str, str], references.Resource] = {}
        self._patches: dict[int, _SharedPatch] = {}

    def make(
        self, matter: _native.Matter, stopper: stoppers.DaemonStopper | None = None
    ) -> causes.BaseCause:
        """Make the cause of a call. To be followed by ``release()`` when the call ends."""
        if matter.kind == "activity":
            activity = causes.Activity(matter.activity)
            return causes.ActivityCause(
                logger=logging.getLogger(f"kopf.activities.{activity.value}"),
                indices=self._indices,
                memo=self._memo,
                activity=activity,
                settings=self._settings,
            )
        body = bodies.Body(matter.body())
        common: dict[str, Any] = {
            "indices": self._indices,
            "memo": self._memo_of(matter),
            "resource": self.resource(matter),
            "patch": self._acquire(matter, body),
            "body": body,
        }
        return self._make_resource_cause(matter, body, common, stopper)

    def _make_resource_cause(
        self,
        matter: _native.Matter,
        body: bodies.Body,
        common: dict[str, Any],
        stopper: stoppers.DaemonStopper | None,
    ) -> causes.ResourceCause:
        kind = matter.kind
        if kind == "change":
            return causes.ChangingCause(
                logger=loggers.ObjectLogger(body=body, settings=self._settings),
                initial=matter.initial,
                reason=causes.Reason(matter.reason),
                diff=_diff(matter),
                old=matter.old(),
                new=matter.new(),
                **common,
            )
        if kind == "background":
            full = loggers.ObjectLogger(body=body, settings=self._settings)
            if stopper is None:
                return causes.SpawningCause(logger=full, reset=False, **common)
            return causes.DaemonCause(logger=full, stopper=stopper, **common)
        if kind == "index":
            terse = loggers.TerseObjectLogger(body=body, settings=self._settings)
            return causes.IndexingCause(logger=terse, **common)
        local = loggers.LocalObjectLogger(body=body, settings=self._settings)
        if kind == "event":
            event: Any = {"type": matter.event_type, "object": body._src}
            return causes.WatchingCause(logger=local, type=event["type"], event=event, **common)
        if kind == "admission":
            return self._make_webhook_cause(matter, local, common)
        raise ValueError(f"Unknown kind of a cause: {kind}")

    def _make_webhook_cause(
        self, matter: _native.Matter, logger: Any, common: dict[str, Any]
    ) -> causes.WebhookCause:
        review = matter.review()
        assert review is not None
        old, new = review.pop("old"), review.pop("new")
        return causes.WebhookCause(
            logger=logger,
            reason=None,
            webhook=None,
            sslpeer=review.pop("sslpeer", {}),
            warnings=[],
            old=None if old is None else bodies.Body(old),
            new=None if new is None else bodies.Body(new),
            diff=_diff(matter),
            **review,
            **common,
        )

    def resource(self, matter: _native.Matter) -> references.Resource:
        """Get the resource of an object; the same one every time."""
        key = matter.resource_key()
        found = self._resources.get(key)
        if found is None:
            found = self._resources[key] = resource_of(matter.resource())
        return found

    def _memo_of(self, matter: _native.Matter) -> ephemera.AnyMemo:
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

    def release(self, matter: _native.Matter) -> None:
        """Hand over what a call has put into its patch."""
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
            shared.known = copy.deepcopy(dict(patch))
            shared.functions = len(patch.fns)


def resource_of(fields: dict[str, Any]) -> references.Resource:
    """Make a resource from the fields that the engine knows."""
    for name in ("shortcuts", "categories", "subresources", "verbs"):
        fields[name] = frozenset(fields[name])
    return references.Resource(**fields)


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
