"""The kwargs of one call as instances of models.

Instances of one call share their parts: ``body.status`` is ``status``. What a handler changes in
the status is written when the handler ends, as the changes of its patch are.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from kopf._handlers import execution
from kopf._models.conversion import decode, encode
from kopf._models.flavours import flavour_of, name_of
from kopf._models.resources import is_resource, resource_of
from kopf._structs import bodies


class Typed:
    """Replaces kwargs by instances, and takes over what a handler does to the status."""

    def __init__(self, wanted: Mapping[str, Any], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self._wanted = wanted
        self._kwargs = kwargs
        self._status: Any = None
        self._before: Any = None

    def __enter__(self) -> None:
        made = {name: self._make(name, tp) for name, tp in self._wanted.items() if name != "body"}
        body = self._wanted.get("body")
        if body is not None:
            made["body"] = _object(body, self._kwargs["body"], "body", made)
        self._kwargs.update(made)
        self._status = made.get("status", getattr(made.get("body"), "status", None))
        self._before = encode(self._status)

    def _make(self, name: str, tp: Any) -> Any:
        raw = self._kwargs.get(name)
        if name in ("spec", "status"):
            return _section(tp, raw, name)
        if raw is None:
            return None  # there was nothing before the creation, or is nothing in the field
        return _object(tp, raw, name, {}) if is_resource(tp) else _decoded(tp, raw, name)

    def __exit__(self, *_: object) -> None:
        patch = self._kwargs.get("patch")
        if self._status is None or patch is None:
            return
        changes = _changes(self._before, encode(self._status))
        if changes:
            _merge(patch.setdefault("status", {}), changes)


def _object(cls: Any, raw: Mapping[str, Any], name: str, made: Mapping[str, Any]) -> Any:
    """Make an instance of the class of a resource; parts that are made already are used again."""
    declared = resource_of(cls)
    view = raw if isinstance(raw, bodies.Body) else bodies.Body(raw)
    if flavour_of(cls) is not None:
        instance = _decoded(cls, view, name)
    else:
        instance = object.__new__(cls)
        instance.spec = _section(declared.spec, view.get("spec"), "spec")
        instance.status = _section(declared.status, view.get("status"), "status")
        instance.metadata = view.metadata
    for part, value in made.items():
        if part in ("spec", "status"):
            setattr(instance, part, value)
    return instance


def _section(tp: Any, raw: Any, name: str) -> Any:
    """Make the spec or the status; none for a status that has not been written yet."""
    if tp is None:
        return raw
    try:
        return _decoded(tp, {} if raw is None else raw, name)
    except execution.PermanentError:
        if name == "status" and not raw:
            return None
        raise


def _decoded(tp: Any, raw: Any, name: str) -> Any:
    try:
        return decode(tp, raw)
    except Exception as e:
        raise execution.PermanentError(f"The {name} does not fit {name_of(tp)}: {e}") from e


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Make the merge patch from one state to another."""
    changes: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if key in before and old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            changes[key] = _changes(old, value)
        else:
            changes[key] = value
    return changes


def _merge(target: MutableMapping[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), MutableMapping):
            _merge(target[key], value)
        else:
            target[key] = value
