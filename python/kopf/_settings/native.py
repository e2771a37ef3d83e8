"""Descriptions of storages for the engine.

The engine runs the stock storages by itself. A storage of any other class, also of a subclass,
stays in Python: its description is None.
"""

from __future__ import annotations

from typing import Any

from kopf._settings import diffbase, progress


def describe_progress(storage: progress.ProgressStorage) -> dict[str, Any] | None:
    """Describe a storage of progress, or None if its methods must be called."""
    kind = type(storage)
    if isinstance(storage, progress.AnnotationsProgressStorage):
        if kind is not progress.AnnotationsProgressStorage:
            return None
        return {
            "type": "annotations",
            "prefix": storage.prefix,
            "v1": storage.v1,
            "verbose": storage.verbose,
            "touch_key": storage.touch_key,
        }
    if isinstance(storage, progress.StatusProgressStorage):
        stock = (progress.StatusProgressStorage, progress.NoWriteStatusProgressStorage)
        if kind not in stock:
            return None
        return {
            "type": "status",
            "name": storage._name,
            "field": list(storage.field),
            "touch_field": list(storage.touch_field),
            "readonly": kind is progress.NoWriteStatusProgressStorage,
        }
    if kind is progress.SmartProgressStorage or kind is progress.MultiProgressStorage:
        assert isinstance(storage, progress.MultiProgressStorage)
        parts = [describe_progress(part) for part in storage.storages]
        if any(part is None for part in parts):
            return None
        types = [(part or {}).get("type") for part in parts]
        if types == ["annotations", "status"] and parts[1] and parts[1]["readonly"]:
            return {**parts[1], **(parts[0] or {}), "type": "smart"}
        return {"type": "multi", "storages": parts}
    return None


def describe_diffbase(storage: diffbase.DiffBaseStorage) -> dict[str, Any] | None:
    """Describe a storage of last handled states, or None if its methods must be called."""
    kind = type(storage)
    ignored = [list(_path(field)) for field in storage.ignored_fields]
    if isinstance(storage, diffbase.AnnotationsDiffBaseStorage):
        if kind is not diffbase.AnnotationsDiffBaseStorage:
            return None
        return {
            "type": "annotations",
            "prefix": storage.prefix,
            "key": storage.key,
            "v1": storage.v1,
            "ignored_fields": ignored,
        }
    if isinstance(storage, diffbase.StatusDiffBaseStorage):
        if kind is not diffbase.StatusDiffBaseStorage:
            return None
        return {
            "type": "status",
            "name": storage._name,
            "field": list(storage.field),
            "ignored_fields": ignored,
        }
    if isinstance(storage, diffbase.MultiDiffBaseStorage) and kind is diffbase.MultiDiffBaseStorage:
        parts = [describe_diffbase(part) for part in storage.storages]
        if any(part is None for part in parts):
            return None
        return {"type": "multi", "storages": parts}
    return None


def _path(field: Any) -> tuple[str, ...]:
    from kopf._structs import dicts

    return dicts.parse_field(field)
