"""Storages of the progress of handlers.

A record of a handler says when it started, when it will be tried again, and how it ended.
Records are removed when all handlers of a change are done.
"""

from __future__ import annotations

import abc
import copy
import functools
import json
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict, cast

from kopf._settings import conventions
from kopf._structs import bodies, dicts, ids, patches

_ABSENT = object()


class ProgressRecord(TypedDict, total=False):
    """The stored state of one handler."""

    started: str | None
    stopped: str | None
    delayed: str | None
    purpose: str | None
    retries: int | None
    success: bool | None
    failure: bool | None
    message: str | None
    subrefs: Collection[ids.HandlerId] | None


class ProgressStorage(conventions.StorageStanzaCleaner, metaclass=abc.ABCMeta):
    """The interface of all storages of progress. Subclass it to keep the progress elsewhere."""

    @abc.abstractmethod
    def fetch(self, *, key: ids.HandlerId, body: bodies.Body) -> ProgressRecord | None:
        """Get the record of a handler, or None."""
        raise NotImplementedError

    @abc.abstractmethod
    def store(
        self,
        *,
        key: ids.HandlerId,
        record: ProgressRecord,
        body: bodies.Body,
        patch: patches.Patch,
    ) -> None:
        """Put the record of a handler into the patch."""
        raise NotImplementedError

    @abc.abstractmethod
    def purge(self, *, key: ids.HandlerId, body: bodies.Body, patch: patches.Patch) -> None:
        """Remove the record of a handler."""
        raise NotImplementedError

    @abc.abstractmethod
    def touch(self, *, body: bodies.Body, patch: patches.Patch, value: str | None) -> None:
        """Change a value that means nothing, to get a new event; None removes it."""
        raise NotImplementedError

    @abc.abstractmethod
    def clear(self, *, essence: bodies.BodyEssence) -> bodies.BodyEssence:
        """Get a copy of an essence without the values of this storage."""
        return copy.deepcopy(essence)

    def flush(self) -> None:
        """Called after every batch of ``store`` and ``purge``."""


def _purge_field(body: bodies.Body, patch: patches.Patch, field: dicts.FieldPath) -> None:
    """Remove a field that is on the object, or forget it if it is only in the patch."""
    if dicts.resolve(body, field, _ABSENT) is not _ABSENT:
        dicts.ensure(patch, field, None)
    elif dicts.resolve(patch, field, _ABSENT) is not _ABSENT:
        dicts.remove(patch, field)


_STATE_SUFFIX = "/handled-state"


def _handled_state_key(key: str) -> ids.HandlerId:
    """The key for the state for which a handler has finished, beside its record.

    Kopf would drop an unknown field from a record in the status, but not from the object.
    """
    return ids.HandlerId(f"{key}{_STATE_SUFFIX}")


class AnnotationsProgressStorage(
    conventions.StorageKeyFormingConvention,
    conventions.StorageKeyMarkingConvention,
    ProgressStorage,
):
    """Keeps records as JSON in annotations of the object."""

    def __init__(
        self,
        *,
        prefix: str = "kopf.zalando.org",
        verbose: bool = False,
        touch_key: str = "touch-dummy",
        v1: bool = True,
    ) -> None:
        super().__init__(prefix=prefix, v1=v1)
        self.verbose = verbose
        self.touch_key = touch_key

    def _fields(self, key: str, body: bodies.Body) -> list[dicts.FieldPath]:
        return [("metadata", "annotations", name) for name in self.make_keys(key, body=body)]

    def fetch(self, *, key: ids.HandlerId, body: bodies.Body) -> ProgressRecord | None:
        texts = (dicts.resolve(body, field, None) for field in self._fields(key, body))
        records = (json.loads(text) for text in texts if text is not None)
        return cast("ProgressRecord | None", next((r for r in records if r is not None), None))

    def store(
        self,
        *,
        key: ids.HandlerId,
        record: ProgressRecord,
        body: bodies.Body,
        patch: patches.Patch,
    ) -> None:
        known: Mapping[str, Any] = record
        if not self.verbose:
            known = {name: value for name, value in record.items() if value is not None}
        text = json.dumps(known, separators=(",", ":"))
        self._write(self._fields(key, body), text, body=body, patch=patch)

    def _write(
        self,
        fields: Collection[dicts.FieldPath],
        value: str | None,
        *,
        body: bodies.Body,
        patch: patches.Patch,
    ) -> None:
        """Put a value into annotations, and mark the object as ours."""
        for field in fields:
            dicts.ensure(patch, field, value)
        if fields:
            self._store_marker(prefix=self.prefix, patch=patch, body=body)

    def purge(self, *, key: ids.HandlerId, body: bodies.Body, patch: patches.Patch) -> None:
        for field in self._fields(key, body):
            _purge_field(body, patch, field)

    def touch(self, *, body: bodies.Body, patch: patches.Patch, value: str | None) -> None:
        fields = self._fields(self.touch_key, body)
        outdated = [field for field in fields if dicts.resolve(body, field, None) != value]
        self._write(outdated, value, body=body, patch=patch)

    def clear(self, *, essence: bodies.BodyEssence) -> bodies.BodyEssence:
        cleared = super().clear(essence=essence)
        everything: Mapping[str, str] = cleared.get("metadata", {}).get("annotations", {})
        self.remove_annotations(cleared, {k for k in everything if k.startswith(f"{self.prefix}/")})
        self.remove_empty_stanzas(cleared)
        return cleared


class StatusProgressStorage(ProgressStorage):
    """Keeps records as dicts in the status of the object."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: dicts.FieldSpec = "status.{name}.progress",
        touch_field: dicts.FieldSpec = "status.{name}.dummy",
    ) -> None:
        super().__init__()
        self._name = name
        self._field = self._parse(field)
        self._touch_field = self._parse(touch_field)

    def _parse(self, field: dicts.FieldSpec) -> dicts.FieldPath:
        text = field.format(name=self._name) if isinstance(field, str) else field
        return dicts.parse_field(text)

    @property
    def field(self) -> dicts.FieldPath:
        return self._field

    @field.setter
    def field(self, field: dicts.FieldSpec) -> None:
        self._field = self._parse(field)

    @property
    def touch_field(self) -> dicts.FieldPath:
        return self._touch_field

    @touch_field.setter
    def touch_field(self, field: dicts.FieldSpec) -> None:
        self._touch_field = self._parse(field)

    def fetch(self, *, key: ids.HandlerId, body: bodies.Body) -> ProgressRecord | None:
        records: Mapping[str, Any] = dicts.resolve(body, self.field, {})
        record = records.get(key)
        state_key = _handled_state_key(key)
        named = (record or {}).get("subrefs") or ()
        if record is None or not any(subref.endswith(_STATE_SUFFIX) for subref in named):
            return cast("ProgressRecord | None", record)
        subrefs = [subref for subref in named if not subref.endswith(_STATE_SUFFIX)]
        joined = {**record, **(records.get(state_key) or {}), "subrefs": subrefs or None}
        return cast("ProgressRecord", {k: v for k, v in joined.items() if v is not None})

    def store(
        self,
        *,
        key: ids.HandlerId,
        record: ProgressRecord,
        body: bodies.Body,
        patch: patches.Patch,
    ) -> None:
        stored = cast("dict[str, Any]", record)
        state_key = _handled_state_key(key)
        subrefs = [*(stored.get("subrefs") or ())]
        states = [k for k in map(_handled_state_key, subrefs) if self._entry(k, body, patch)]
        if states:
            stored = {**stored, "subrefs": sorted([*subrefs, *states])}
        if stored.get("handled") is not None:
            state = {"handled": stored["handled"]}
            dicts.ensure(patch, (*self.field, state_key), state)
            self._name_in_outer_records(key, body=body, patch=patch)
            subrefs = sorted([*subrefs, *states, state_key])
            stored = {k: v for k, v in stored.items() if k != "handled"} | {"subrefs": subrefs}
        else:
            _purge_field(body, patch, (*self.field, state_key))
            if dicts.resolve(body, (*self.field, key, "handled"), None) is not None:
                stored = {**stored, "handled": None}
        dicts.ensure(patch, (*self.field, key), stored)

    def _entry(self, key: str, body: bodies.Body, patch: patches.Patch) -> Mapping[str, Any]:
        """An entry that is about to be stored, or that is stored."""
        absent = object()
        entry = dicts.resolve(patch, (*self.field, key), absent)
        stored = dicts.resolve(body, (*self.field, key), None) if entry is absent else entry
        return cast("Mapping[str, Any]", stored or {})

    def _name_in_outer_records(
        self, key: ids.HandlerId, *, body: bodies.Body, patch: patches.Patch
    ) -> None:
        """Name the state of a sub-handler where Kopf looks for what it has to remove."""
        state_key = _handled_state_key(key)
        parts = key.split("/")
        for outer in ("/".join(parts[:end]) for end in range(1, len(parts))):
            subrefs = self._entry(outer, body, patch).get("subrefs") or ()
            if key in subrefs and state_key not in subrefs:
                named = sorted([*subrefs, state_key])
                dicts.ensure(patch, (*self.field, outer, "subrefs"), named)

    def purge(self, *, key: ids.HandlerId, body: bodies.Body, patch: patches.Patch) -> None:
        _purge_field(body, patch, (*self.field, key))
        _purge_field(body, patch, (*self.field, _handled_state_key(key)))

    def touch(self, *, body: bodies.Body, patch: patches.Patch, value: str | None) -> None:
        if dicts.resolve(body, self.touch_field, None) != value:
            dicts.ensure(patch, self.touch_field, value)

    def clear(self, *, essence: bodies.BodyEssence) -> bodies.BodyEssence:
        cleared = super().clear(essence=essence)
        dicts.remove(cast("dict[str, Any]", cleared), self.field)
        self.remove_empty_stanzas(cleared)
        return cleared


class NoWriteStatusProgressStorage(StatusProgressStorage):
    """Reads and purges records in the status, but never writes them."""

    def store(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass


class MultiProgressStorage(ProgressStorage):
    """Writes to several storages; reads from the first one that has a record."""

    def __init__(self, storages: Collection[ProgressStorage]) -> None:
        super().__init__()
        self.storages = storages

    def fetch(self, *, key: ids.HandlerId, body: bodies.Body) -> ProgressRecord | None:
        records = (storage.fetch(key=key, body=body) for storage in self.storages)
        return next((record for record in records if record is not None), None)

    def clear(self, *, essence: bodies.BodyEssence) -> bodies.BodyEssence:
        return functools.reduce(lambda e, storage: storage.clear(essence=e), self.storages, essence)

    def touch(self, *, body: bodies.Body, patch: patches.Patch, value: str | None) -> None:
        self._call_each(operator.methodcaller("touch", body=body, patch=patch, value=value))

    def purge(self, *, key: ids.HandlerId, body: bodies.Body, patch: patches.Patch) -> None:
        self._call_each(operator.methodcaller("purge", key=key, body=body, patch=patch))

    def store(
        self,
        *,
        key: ids.HandlerId,
        record: ProgressRecord,
        body: bodies.Body,
        patch: patches.Patch,
    ) -> None:
        # Kopf ignores the state for which a handler has finished, but would leave it behind in
        # storages that it does not read.
        copied = cast("ProgressRecord", {k: v for k, v in record.items() if k != "handled"})
        for index, storage in enumerate(self.storages):
            written = copied if index else record
            storage.store(key=key, record=written, body=body, patch=patch)

    def _call_each(self, call: Callable[[ProgressStorage], None]) -> None:
        for storage in self.storages:
            call(storage)


class SmartProgressStorage(MultiProgressStorage):
    """The default: writes annotations, and reads old records from the status too."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: dicts.FieldSpec = "status.{name}.progress",
        touch_key: str = "touch-dummy",
        touch_field: dicts.FieldSpec = "status.{name}.dummy",
        prefix: str = "kopf.zalando.org",
        v1: bool = True,
        verbose: bool = False,
    ) -> None:
        annotations = AnnotationsProgressStorage(
            prefix=prefix, verbose=verbose, touch_key=touch_key, v1=v1
        )
        status = NoWriteStatusProgressStorage(name=name, field=field, touch_field=touch_field)
        super().__init__([annotations, status])
