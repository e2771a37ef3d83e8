"""Storages of the last handled state of objects, and what of an object counts as its state."""

from __future__ import annotations

import abc
import copy
import json
from collections.abc import Collection, Iterable
from typing import Any, cast

from kopf._settings import conventions
from kopf._structs import bodies, dicts, patches

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _dump(essence: bodies.BodyEssence) -> str:
    return json.dumps(essence, separators=(",", ":"))


class DiffBaseStorage(
    conventions.StorageKeyMarkingConvention,
    conventions.StorageStanzaCleaner,
    metaclass=abc.ABCMeta,
):
    """The interface of all storages of the last handled state."""

    def __init__(self, ignored_fields: Iterable[dicts.FieldSpec] | None = None) -> None:
        super().__init__()
        self.ignored_fields = list(ignored_fields or ())

    def build(
        self,
        *,
        body: bodies.Body,
        extra_fields: Iterable[dicts.FieldSpec] | None = None,
    ) -> bodies.BodyEssence:
        """Get the essence of an object: what counts as a change when it changes.

        That is everything but the identity, the status and the system's metadata.
        ``extra_fields`` are kept in any case: these are the fields of handlers.
        """
        dropped = ("apiVersion", "kind", "metadata", "status")
        essence = {k: copy.deepcopy(v) for k, v in body.items() if k not in dropped}
        metadata = ("metadata.labels", "metadata.annotations")
        dicts.cherrypick(src=body, dst=essence, fields=metadata, picker=copy.deepcopy)

        annotations: dict[str, str] = dicts.resolve(essence, "metadata.annotations", {})
        foreign = self._detect_marked_prefixes(annotations)
        for key in list(annotations):
            if key == _LAST_APPLIED or key.partition("/")[0] in foreign and "/" in key:
                del annotations[key]

        dicts.cherrypick(src=body, dst=essence, fields=extra_fields, picker=copy.deepcopy)
        result = cast(bodies.BodyEssence, essence)
        self.remove_empty_stanzas(result)
        for field in self.ignored_fields:
            try:
                dicts.remove(essence, field)
            except TypeError:
                continue  # a parent of the field is not a dict
        return result

    @abc.abstractmethod
    def fetch(self, *, body: bodies.Body) -> bodies.BodyEssence | None:
        """Get the last handled state of an object, or None."""
        raise NotImplementedError

    @abc.abstractmethod
    def store(
        self, *, body: bodies.Body, patch: patches.Patch, essence: bodies.BodyEssence
    ) -> None:
        """Put the last handled state of an object into the patch."""
        raise NotImplementedError


class AnnotationsDiffBaseStorage(conventions.StorageKeyFormingConvention, DiffBaseStorage):
    """Keeps the state as JSON in an annotation."""

    def __init__(
        self,
        *,
        prefix: str = "kopf.zalando.org",
        key: str = "last-handled-configuration",
        ignored_fields: Iterable[dicts.FieldSpec] | None = None,
        v1: bool = True,
    ) -> None:
        super().__init__(prefix=prefix, v1=v1, ignored_fields=ignored_fields)
        self.key = key

    def build(
        self,
        *,
        body: bodies.Body,
        extra_fields: Iterable[dicts.FieldSpec] | None = None,
    ) -> bodies.BodyEssence:
        own = set(self.make_keys(self.key, body=body))
        result = super().build(body=body, extra_fields=extra_fields)
        self.remove_annotations(result, own)
        self.remove_empty_stanzas(result)
        return result

    def fetch(self, *, body: bodies.Body) -> bodies.BodyEssence | None:
        texts = map(body.metadata.annotations.get, self.make_keys(self.key, body=body))
        states = (json.loads(text) for text in texts if text is not None)
        return cast("bodies.BodyEssence | None", next((s for s in states if s is not None), None))

    def store(
        self, *, body: bodies.Body, patch: patches.Patch, essence: bodies.BodyEssence
    ) -> None:
        encoded = _dump(essence) + "\n"  # kubectl prints it better with a line break
        for name in self.make_keys(self.key, body=body):
            patch.metadata.annotations[name] = encoded
        self._store_marker(prefix=self.prefix, patch=patch, body=body)


class StatusDiffBaseStorage(DiffBaseStorage):
    """Keeps the state as JSON in a field of the status."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: dicts.FieldSpec = "status.{name}.last-handled-configuration",
        ignored_fields: Iterable[dicts.FieldSpec] | None = None,
    ) -> None:
        super().__init__(ignored_fields=ignored_fields)
        self._name = name
        self._field: dicts.FieldPath = ()
        self.field = field  # type: ignore[assignment]

    @property
    def field(self) -> dicts.FieldPath:
        return self._field

    @field.setter
    def field(self, field: dicts.FieldSpec) -> None:
        text = field.format(name=self._name) if isinstance(field, str) else field
        self._field = dicts.parse_field(text)

    def build(
        self,
        *,
        body: bodies.Body,
        extra_fields: Iterable[dicts.FieldSpec] | None = None,
    ) -> bodies.BodyEssence:
        essence = super().build(body=body, extra_fields=extra_fields)
        dicts.remove(cast("dict[str, Any]", essence), self.field)
        return essence

    def fetch(self, *, body: bodies.Body) -> bodies.BodyEssence | None:
        encoded: str | None = dicts.resolve(body, self.field, None)
        return None if encoded is None else cast(bodies.BodyEssence, json.loads(encoded))

    def store(
        self, *, body: bodies.Body, patch: patches.Patch, essence: bodies.BodyEssence
    ) -> None:
        dicts.ensure(patch, self.field, _dump(essence))


class MultiDiffBaseStorage(DiffBaseStorage):
    """Writes to several storages; reads from the first one that has a state."""

    def __init__(self, storages: Collection[DiffBaseStorage]) -> None:
        super().__init__()
        self.storages = storages

    def build(
        self,
        *,
        body: bodies.Body,
        extra_fields: Iterable[dicts.FieldSpec] | None = None,
    ) -> bodies.BodyEssence:
        fields = None if extra_fields is None else list(extra_fields)
        essence = super().build(body=body, extra_fields=fields)
        for storage in self.storages:
            essence = storage.build(body=bodies.Body(essence), extra_fields=fields)
        return essence

    def fetch(self, *, body: bodies.Body) -> bodies.BodyEssence | None:
        states = (storage.fetch(body=body) for storage in self.storages)
        return next((state for state in states if state is not None), None)

    def store(
        self, *, body: bodies.Body, patch: patches.Patch, essence: bodies.BodyEssence
    ) -> None:
        for storage in self.storages:
            storage.store(body=body, patch=patch, essence=essence)
